"""The player of `tritax play` that learns: proximal policy optimisation (arXiv:1707.06347), with numpy.

    find = tritax.play(schedule, machine, player="ppo", moves=2000)
    find.save_moves("moves.json")   # for tritax play --replay

The game is CuAsmRL's (arXiv:2501.08071; docs/play.md): an episode is at most 32 moves from the start, a move's reward
the change of speed in percent of that at the start, and what is masked cannot be drawn. So are most settings
(`PpoOptions`). Not so the network. Theirs sees a whole listing by convolutions; here every move that is allowed is
rated by the same small network, from what moves and what it passes, plus a learned number of its own. So
it may be used on boards of any size, and what is learned of one place is known at others. Debian has no package of a
library with PPO.

Parts: returns and advantages (`discounted`, `advantages`), the network with its gradient (`Policy`), the learner
(`Ppo`), which takes any `Environment`, and the board of a schedule as one (`ScheduleEnvironment`).
"""

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Protocol, Sequence, Tuple

import numpy as np

from ._core import Find, Game, Machine, Schedule, UserError, moves_of_episode, op_kinds, play_by_rules, players

Array = Any  # numpy.ndarray; its types differ between the versions of numpy that distributions have


@dataclass(frozen=True)
class PpoOptions:
    """As CuAsmRL has them, but for the rate of learning (2.5e-4 there, for 64,000 moves) and the width."""

    steps: int = 64  # moves between two updates
    minibatch: int = 8
    epochs: int = 4
    learning_rate: float = 3e-3  # at first; falls to 0 with the moves that are left
    discount: float = 0.99
    smoothing: float = 0.95  # of the advantage, lambda
    clip: float = 0.2
    entropy: float = 0.01
    value: float = 0.5
    gradient_norm: float = 0.5
    width: int = 32


def discounted(rewards: Sequence[float], ends: Sequence[bool], last_value: float, discount: float) -> Array:
    """What is still to come behind every step: r + discount · what comes behind the next one, but of the same episode.

    `last_value`: what is expected behind the last step, if its episode goes on.
    """
    returns = np.zeros(len(rewards))
    following = last_value
    for t in reversed(range(len(rewards))):
        following = rewards[t] + (0.0 if ends[t] else discount * following)
        returns[t] = following
    return returns


def advantages(rewards: Sequence[float], values: Sequence[float], ends: Sequence[bool], last_value: float,
               discount: float, smoothing: float) -> Array:
    """Generalised advantage estimation (arXiv:1506.02438): errors r + discount · v' - v, summed with (discount · smoothing)^n."""
    result = np.zeros(len(rewards))
    next_value, following = last_value, 0.0
    for t in reversed(range(len(rewards))):
        if ends[t]:
            next_value, following = 0.0, 0.0
        error = rewards[t] + discount * next_value - values[t]
        following = error + discount * smoothing * following
        result[t] = following
        next_value = values[t]
    return result


@dataclass
class Observation:
    """The moves that may be made: a row of features each, and which action of the environment each is."""

    features: Array
    actions: Array


@dataclass
class Sample:
    """A step that was made, as the loss wants it."""

    seen: Observation
    chosen: int  # row of `seen`
    log_probability: float  # when it was chosen
    advantage: float
    target: float  # of the value


class Environment(Protocol):
    """What can be learned. Actions are numbered from 0."""

    actions: int
    features: int

    def reset(self) -> Observation: ...
    def step(self, action: int) -> Optional[Tuple[float, bool]]:
        """Reward, and whether the episode is over; None if the mask refuses it after all, and nothing has changed."""
    def observe(self) -> Observation:
        """Of the position. No moves: the episode cannot go on."""


def _log_softmax(logits: Array) -> Array:
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


class Policy:
    """Rates moves: two layers of tanh for each, a logit from the second, and the value from the mean over the moves."""

    def __init__(self, features: int, actions: int, width: int, random: Any):
        def layer(rows: int, cols: int, scale: float = 1.0) -> Array:
            return random.standard_normal((rows, cols)) * scale / np.sqrt(rows)

        self.weights: Dict[str, Array] = {
            "in": layer(features, width), "in_bias": np.zeros(width),
            "hidden": layer(width, width), "hidden_bias": np.zeros(width),
            "logit": layer(width, 1, 0.01), "own": np.zeros(actions),
            "value_in": layer(width, width), "value_bias": np.zeros(width),
            "value": layer(width, 1), "value_offset": np.zeros(1),
        }

    def forward(self, seen: Observation) -> Tuple[Array, float, Tuple[Array, Array, Array, Array]]:
        """Logits of the moves, the value of the position, and what the gradient needs."""
        w = self.weights
        first = np.tanh(seen.features @ w["in"] + w["in_bias"])
        second = np.tanh(first @ w["hidden"] + w["hidden_bias"])
        logits = (second @ w["logit"])[:, 0] + w["own"][seen.actions]
        mean = second.mean(axis=0)
        inner = np.tanh(mean @ w["value_in"] + w["value_bias"])
        value = float(inner @ w["value"][:, 0] + w["value_offset"][0])
        return logits, value, (first, second, mean, inner)

    def _backward(self, seen: Observation, cache: Tuple[Array, Array, Array, Array], by_logits: Array, by_value: float,
                  gradient: Dict[str, Array]) -> None:
        w = self.weights
        first, second, mean, inner = cache
        gradient["value"][:, 0] += by_value * inner
        gradient["value_offset"] += by_value
        by_inner = by_value * w["value"][:, 0] * (1 - inner**2)
        gradient["value_in"] += np.outer(mean, by_inner)
        gradient["value_bias"] += by_inner
        np.add.at(gradient["own"], seen.actions, by_logits)
        gradient["logit"][:, 0] += second.T @ by_logits
        by_second = np.outer(by_logits, w["logit"][:, 0]) + w["value_in"] @ by_inner / len(second)
        by_second *= 1 - second**2
        gradient["hidden"] += first.T @ by_second
        gradient["hidden_bias"] += by_second.sum(axis=0)
        by_first = (by_second @ w["hidden"].T) * (1 - first**2)
        gradient["in"] += seen.features.T @ by_first
        gradient["in_bias"] += by_first.sum(axis=0)

    def loss(self, samples: Sequence[Sample], options: PpoOptions) -> Tuple[float, Dict[str, Array]]:
        """Mean over the samples of - clipped surrogate - entropy + squared error of the value, and its gradient."""
        gradient = {name: np.zeros_like(weight) for name, weight in self.weights.items()}
        total = 0.0
        for sample in samples:
            logits, value, cache = self.forward(sample.seen)
            log = _log_softmax(logits)
            share = np.exp(log)
            ratio = float(np.exp(log[sample.chosen] - sample.log_probability))
            free = ratio * sample.advantage
            held = float(np.clip(ratio, 1 - options.clip, 1 + options.clip)) * sample.advantage
            entropy = -float(share @ log)
            error = value - sample.target
            total += -min(free, held) - options.entropy * entropy + options.value * 0.5 * error**2
            chosen = np.zeros_like(share)
            chosen[sample.chosen] = 1
            by_log = -free if free <= held else 0.0  # the other one is flat
            by_logits = by_log * (chosen - share) + options.entropy * share * (log + entropy)
            self._backward(sample.seen, cache, by_logits / len(samples), options.value * error / len(samples), gradient)
        return total / len(samples), gradient


class Adam:
    """Steps down a gradient (arXiv:1412.6980), cut to a norm."""

    def __init__(self, weights: Dict[str, Array], most_norm: float):
        self.weights, self.most_norm, self.count = weights, most_norm, 0
        self.mean = {name: np.zeros_like(weight) for name, weight in weights.items()}
        self.square = {name: np.zeros_like(weight) for name, weight in weights.items()}

    def step(self, gradient: Dict[str, Array], rate: float) -> None:
        norm = np.sqrt(sum(float((g**2).sum()) for g in gradient.values()))
        cut = min(1.0, self.most_norm / (norm + 1e-12))
        self.count += 1
        for name, weight in self.weights.items():
            g = gradient[name] * cut
            self.mean[name] = 0.9 * self.mean[name] + 0.1 * g
            self.square[name] = 0.999 * self.square[name] + 0.001 * g**2
            mean = self.mean[name] / (1 - 0.9**self.count)
            square = self.square[name] / (1 - 0.999**self.count)
            weight -= rate * mean / (np.sqrt(square) + 1e-5)


@dataclass
class _Step:
    seen: Observation
    chosen: int
    log_probability: float
    value: float
    reward: float
    ends: bool


class Ppo:
    """Learns an environment. The same seed gives the same course."""

    def __init__(self, environment: Environment, options: PpoOptions = PpoOptions(), seed: int = 1):
        self.environment, self.options = environment, options
        self.random = np.random.default_rng(seed)
        self.policy = Policy(environment.features, environment.actions, options.width, self.random)
        self.adam = Adam(self.policy.weights, options.gradient_norm)
        self.returns: List[float] = []  # of the episodes that have ended, in percent of the speed at the start
        self._return = 0.0
        self._fresh = True  # nothing has been made since the environment was reset

    def _reset(self) -> Observation:
        self._fresh = True
        return self.environment.reset()

    def _choose(self, seen: Observation) -> Tuple[int, float, float]:
        logits, value, _ = self.policy.forward(seen)
        log = _log_softmax(logits)
        share = np.exp(log)
        chosen = int(self.random.choice(len(share), p=share / share.sum()))
        return chosen, float(log[chosen]), value

    def _end_episode(self) -> None:
        self.returns.append(self._return)
        self._return = 0.0

    def _collect(self, seen: Observation, over: Callable[[], bool]) -> Tuple[List[_Step], Observation]:
        steps: List[_Step] = []
        while len(steps) < self.options.steps and not over():
            if len(seen.actions) == 0:  # the episode is stuck
                if self._fresh:
                    break
                if steps:
                    steps[-1].ends = True
                self._end_episode()
                seen = self._reset()
                continue
            chosen, log_probability, value = self._choose(seen)
            made = self.environment.step(int(seen.actions[chosen]))
            if made is None:
                seen = self.environment.observe()
                continue
            reward, ends = made
            self._fresh = False
            steps.append(_Step(seen, chosen, log_probability, value, reward, ends))
            self._return += reward
            if ends:
                self._end_episode()
            seen = self._reset() if ends else self.environment.observe()
        return steps, seen

    def _learn(self, steps: List[_Step], behind: Observation, rate: float) -> None:
        o = self.options
        last = self.policy.forward(behind)[1] if len(behind.actions) and not steps[-1].ends else 0.0
        values = [step.value for step in steps]
        gains = advantages([step.reward for step in steps], values, [step.ends for step in steps], last, o.discount,
                           o.smoothing)
        targets = gains + values
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        samples = [Sample(step.seen, step.chosen, step.log_probability, float(gain), float(target))
                   for step, gain, target in zip(steps, gains, targets)]
        for _ in range(o.epochs):
            order = self.random.permutation(len(samples))
            for begin in range(0, len(order), o.minibatch):
                batch = [samples[i] for i in order[begin:begin + o.minibatch]]
                self.adam.step(self.policy.loss(batch, o)[1], rate)

    def learn(self, over: Callable[[], bool], progress: Callable[[], float]) -> None:
        """Until `over`. `progress`: the share of the moves that is used up."""
        seen = self._reset()
        while not over():
            steps, seen = self._collect(seen, over)
            if not steps:
                return
            self._learn(steps, seen, self.options.learning_rate * (1 - min(1.0, progress())))


_TRACKS = ("all of ", "every tile of ", "even workgroups of ", "odd workgroups of ", "first half of ", "second half of ")


class ScheduleEnvironment:
    """The board of a schedule: moves by one neighbour in the wide tracks, and to the next workgroup."""

    def __init__(self, game: Game, most_places: int = 64):
        self.game = game
        self.moves: Array = game.candidates(most_places)
        if len(self.moves) == 0:
            raise UserError("nothing of this schedule can be moved")
        self.actions = len(self.moves)
        track, place, grain, steps, kind = self.moves.T
        names = [game.track_name(t) for t in range(game.wide_tracks)]
        sorts = np.array([next(i for i, prefix in enumerate(_TRACKS) if name.startswith(prefix)) for name in names])
        self._fixed = np.column_stack([np.eye(len(_TRACKS))[sorts[track]], np.eye(3)[grain], np.eye(3)[kind],
                                       np.sign(steps), place / max(1, int(place.max()))])
        self._kinds = np.eye(len(op_kinds) + 1)
        self.features = self._fixed.shape[1] + 2 * self._kinds.shape[1] + 7
        self._made = np.zeros(self.actions)
        self._refused = np.zeros(self.actions, dtype=bool)  # in this position, by the law
        self._seen: Optional[Observation] = None

    def observe(self) -> Observation:
        if self._seen is None:
            self._views = self.game.look(self.moves)
            self._seen = self._of(self._views)
        return self._seen

    def _of(self, views: Array) -> Observation:
        allowed = np.flatnonzero((views[:, 0] == 1) & ~self._refused)
        _, unit, unit_peer, other, other_peer, operations = views[allowed].T
        gained = 100 * (self.game.start_ns / self.game.time_ns - 1)
        changing = np.column_stack([
            unit_peer > 0, other_peer > 0, unit_peer == other_peer, np.log1p(operations) / 4, self._made[allowed] / 4,
            np.full(len(allowed), self.game.made / moves_of_episode), np.full(len(allowed), gained / 10)])
        return Observation(np.column_stack([self._fixed[allowed], self._kinds[unit], self._kinds[other], changing]),
                           allowed)

    def reset(self) -> Observation:
        self.game.back_to_start()
        self._made[:] = 0
        self._forget()
        return self.observe()

    def _forget(self) -> None:
        self._refused[:] = False
        self._seen = None

    def step(self, action: int) -> Optional[Tuple[float, bool]]:
        before = self.game.time_ns
        after = self.game.try_move(self.moves[action])
        if after is None:
            self._refused[action] = True
            self._seen = self._of(self._views)
            return None
        self._made[action] += 1
        self._forget()
        reward = 100 * self.game.start_ns * (1 / after - 1 / before)
        return reward, self.game.made >= moves_of_episode


def play(schedule: Schedule, machine: Machine, *, player: str = players[0], moves: int = 1000, seed: int = 1,
         draws: int = 16, executes: bool = False, progress: Optional[Callable[[int, int], object]] = None) -> Find:
    """A better order for the operations of a schedule, by a game of legal moves: what `tritax play` does (docs/play.md).

    `player`: one of `tritax.players`, or "ppo", which learns. `moves` are evaluated; `draws` seeds test the gain with
    random shares; with `executes` every position is checked and executed on random numbers, too.
    """
    if player != "ppo":
        if player not in players:
            raise UserError(f"player: '{player}' is none; there are {', '.join(players)}, ppo")
        return play_by_rules(schedule, machine, player=player, moves=moves, seed=seed, draws=draws, executes=executes,
                             progress=progress)
    game = Game(schedule, machine, moves=moves, seed=seed, draws=draws, executes=executes)

    def over() -> bool:
        if progress is not None:
            progress(game.evaluated, moves)
        return game.over

    Ppo(ScheduleEnvironment(game), seed=seed).learn(over, lambda: game.evaluated / moves)
    return game.finish("ppo")
