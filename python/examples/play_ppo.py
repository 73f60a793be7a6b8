"""Runs the player that learns from the command line: reads a schedule, writes moves for `tritax play --replay`.

    tritax schedule --pattern fused-sequential -M 4096 -N 8192 -K 8192 --machine h100-4 --gpus 2 -o start.json
    PYTHONPATH=build/release/python python3 python/examples/play_ppo.py start.json --machine h100-4 --moves 1000 --json moves.json
    tritax play start.json --machine h100-4 --replay moves.json --save found.json
"""

import argparse

import tritax


def main() -> None:
    parser = argparse.ArgumentParser(description="Play on a schedule by a player that learns (PPO)")
    parser.add_argument("schedule", help="as `tritax schedule -o` writes it")
    parser.add_argument("--machine", required=True, help="name, or a file")
    parser.add_argument("--player", default="ppo", choices=[*tritax.players, "ppo"])
    parser.add_argument("--moves", type=int, default=1000, help="that are evaluated (default: 1000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=16, help="pairs of runs with random shares that test the gain (default: 16)")
    parser.add_argument("--json", help="write the moves there")
    arguments = parser.parse_args()
    find = tritax.play(tritax.read_schedule(arguments.schedule), tritax.machine(arguments.machine),
                       player=arguments.player, moves=arguments.moves, seed=arguments.seed, draws=arguments.draws)
    print(f"{find.player} evaluated {find.evaluated} moves in {find.seconds:.1f} s")
    print(f"start {find.start_ns / 1e3:.2f} us, found {find.found_ns / 1e3:.2f} us: {100 * find.gain:.2f} % less, "
          "with equal shares of full links")
    if arguments.draws > 0:
        print(f"with random shares {100 * find.gain_with_random_shares:.2f} ± {100 * find.error_of_gain:.2f} % less")
    for line in find.order:
        print("  " + line)
    if arguments.json:
        find.save_moves(arguments.json)


if __name__ == "__main__":
    try:
        main()
    except tritax.UserError as error:
        raise SystemExit(f"error: {error}") from None
