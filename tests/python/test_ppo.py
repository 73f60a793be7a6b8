"""Tests of the player that learns: known returns and gradients, a small board to its best, and a real game."""

import numpy as np
import pytest

import tritax
from tritax.ppo import Observation, Policy, Ppo, PpoOptions, Sample, advantages, discounted


def test_returns_add_up_what_is_still_to_come_of_the_same_episode():
    assert discounted([1, 2, 3], [False, False, False], 10, 0.5) == pytest.approx([1 + 1 + 0.75 + 1.25, 2 + 1.5 + 2.5, 8])
    assert discounted([1, 2, 3], [False, True, False], 10, 0.5) == pytest.approx([2, 2, 8])


def test_advantages_are_returns_less_values_without_smoothing():
    rewards, values, ends = [1.0, -2.0, 3.0, 0.5], [0.3, 0.1, -0.2, 0.4], [False, False, True, False]
    plain = advantages(rewards, values, ends, 2.0, 0.9, 1.0)
    assert plain == pytest.approx(discounted(rewards, ends, 2.0, 0.9) - values)
    one_step = advantages(rewards, values, ends, 2.0, 0.9, 0.0)
    assert one_step == pytest.approx([1 + 0.9 * 0.1 - 0.3, -2 - 0.9 * 0.2 - 0.1, 3 + 0.2, 0.5 + 1.8 - 0.4])


def test_smoothed_advantages_are_those_worked_out_by_hand():
    # Errors 1 + 0.5 · 2 - 1 = 1 and 0.5 · 4 - 2 = 0; then 1 and 2.
    assert advantages([1, 0], [1, 2], [False, False], 4, 0.5, 0.5) == pytest.approx([1, 0])
    assert advantages([1, 2], [1, 2], [False, False], 4, 0.5, 0.5) == pytest.approx([1 + 0.25 * 2, 2])


def test_the_gradient_is_that_of_finite_differences():
    random = np.random.default_rng(3)
    policy = Policy(features=5, actions=9, width=6, random=random)
    for weight in policy.weights.values():
        weight += 0.3 * random.standard_normal(weight.shape)
    samples = []
    for n, chosen, by, gain in [(4, 1, 0.05, 1.5), (7, 6, -0.1, -0.8), (3, 0, 0.9, 1.0), (5, 2, -0.9, -1.0)]:
        seen = Observation(random.standard_normal((n, 5)), random.choice(9, n, replace=False))
        logits, _, _ = policy.forward(seen)
        log = logits[chosen] - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        samples.append(Sample(seen, chosen, float(log) - by, gain, float(random.standard_normal())))  # ratio exp(by)
    options = PpoOptions(entropy=0.1)
    _, gradient = policy.loss(samples, options)
    for name, weight in policy.weights.items():
        for place in np.ndindex(weight.shape):
            kept, h = weight[place], 1e-6
            weight[place] = kept + h
            above = policy.loss(samples, options)[0]
            weight[place] = kept - h
            below = policy.loss(samples, options)[0]
            weight[place] = kept
            assert gradient[name][place] == pytest.approx((above - below) / (2 * h), abs=1e-7, rel=1e-5), name


class Row:
    """Four numbers to be sorted by swaps of neighbours; at first the two in the middle may not change places."""

    actions, features, length = 3, 3 * 8, 12

    def __init__(self):
        self.evaluated = 0
        self.reset()

    def time(self):
        return 10 + float(sum(abs(value - place) for place, value in enumerate(self.row)))

    def reset(self):
        self.row, self.made = [3, 2, 1, 0], 0
        self.start = self.time()
        return self.observe()

    def observe(self):
        rows = np.zeros((3, 24))
        for i in range(3):
            rows[i, 8 * i + self.row[i]] = rows[i, 8 * i + 4 + self.row[i + 1]] = 1
        return Observation(rows, np.arange(3))

    def step(self, action):
        if self.row == [3, 2, 1, 0] and action == 1:
            return None
        before = self.time()
        self.row[action], self.row[action + 1] = self.row[action + 1], self.row[action]
        self.made += 1
        self.evaluated += 1
        return 100 * self.start * (1 / self.time() - 1 / before), self.made == self.length or self.row == [0, 1, 2, 3]


def test_it_learns_a_small_board_to_its_best():
    board = Row()
    learner = Ppo(board, PpoOptions(learning_rate=1e-2), seed=1)
    learner.learn(lambda: board.evaluated >= 2000, lambda: board.evaluated / 2000)
    best = 100 * (board.start / 10 - 1)
    assert np.mean(learner.returns[:30]) < 0.6 * best
    assert np.mean(np.isclose(learner.returns[-30:], best)) > 0.9, "nearly all of the last episodes end sorted"


@pytest.fixture(scope="module")
def game():
    machine = tritax.machine("h100-4")
    problem = tritax.problem("gemm-all-scatter", m=512, n=512, k=256, gpus=2)
    return tritax.schedule(problem, machine, "fused-sequential", tile=(64, 64, 64)), machine


def test_it_plays_and_its_moves_can_be_made_again(game, tmp_path):
    schedule, machine = game
    find = tritax.play(schedule, machine, player="ppo", moves=70, draws=2, executes=True)
    assert find.player == "ppo" and find.evaluated == 70
    assert 0 < find.found_ns <= find.start_ns and find.gain == pytest.approx(1 - find.found_ns / find.start_ns)
    assert not tritax.check(find.schedule, machine) and tritax.execute(find.schedule, machine).right
    again = tritax.play(schedule, machine, player="ppo", moves=70, draws=2)
    assert again.moves == find.moves
    find.save_moves(tmp_path / "moves.json")
    assert '"player":"ppo"' in (tmp_path / "moves.json").read_text()


def test_players_of_the_command_play_too(game):
    schedule, machine = game
    find = tritax.play(schedule, machine, moves=60, draws=0)
    assert find.player == tritax.players[0] and find.evaluated == 60 and find.gain_with_random_shares == find.gain_with_luck == 0


def test_a_game_goes_move_by_move(game):
    schedule, machine = game
    one = tritax.Game(schedule, machine, moves=20)
    moves = one.candidates()
    views = one.look(moves)
    assert len(views) == len(moves) and set(views[:, 0]) == {0, 1}
    made = [row for row in moves[views[:, 0] == 1][:10] if one.try_move(row) is not None]
    assert one.made == len(made) == one.evaluated
    one.take_back()
    one.back_to_start()
    assert one.time_ns == one.start_ns
    with pytest.raises(tritax.UserError, match="no move"):
        one.take_back()
    with pytest.raises(tritax.UserError, match="track"):
        one.try_move([10**6, 0, 0, 1, 0])
    one.finish("someone")
    with pytest.raises(tritax.UserError, match="finished"):
        one.candidates()


def test_who_is_no_player_is_refused(game):
    with pytest.raises(tritax.UserError, match="greedy, anneal.*ppo"):
        tritax.play(*game, player="chess")
    with pytest.raises(tritax.UserError, match="moves: 0"):
        tritax.play(*game, player="ppo", moves=0)
