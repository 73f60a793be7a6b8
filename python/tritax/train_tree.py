"""Trains the decision trees of `tritax tune --selector tree` with scikit-learn.

    python3 train_tree.py QUESTION.json TREES.json

The question has a table (features by row, times by option, the time of the pass, groups, folds) and limits;
the answer is one selector ("tritax.tree/1") for every fold, trained without it, and one trained on all rows.
Scores are worked out by who asks, with its own evaluation of the trees.

A leaf answers the option with the least sum of log times over its rows: the least geometric mean. Splits see a
row with the weight of what the nearest wrong answer costs it: the log of the least time over its best of options
that are not as good as that. Where trees choose worse than always one option for rows that they have not seen
(five parts of the rows, each answered by a tree of the others), a single answer takes the place of the tree.
"""

import json
import sys

NO_LIBRARY = 3  # exit code
# Log of times over the best; options that differ by less are as good as each other.
AS_GOOD = 0.005
# An option that cannot run a row is taken for so much slower than the slowest that can.
SLOWER_IF_IMPOSSIBLE = 10.0

try:
    import numpy as np
    from sklearn.model_selection import GroupKFold
    from sklearn.tree import DecisionTreeClassifier
except ImportError as missing:
    if __name__ == "__main__":
        print(missing, file=sys.stderr)
        sys.exit(NO_LIBRARY)
    raise


def log_losses(times):
    """Log of each time over the best of its row; NaN times are impossible options."""
    best = np.nanmin(times, axis=1, keepdims=True)
    worst = np.nanmax(times, axis=1, keepdims=True)
    filled = np.where(np.isnan(times), SLOWER_IF_IMPOSSIBLE * worst, times)
    return np.log(filled / best)


def short_between(low, high):
    """The number of fewest digits that is at least low and below high, near their middle."""
    middle = low + (high - low) / 2
    for digits in range(1, 17):
        number = float(f"{middle:.{digits}g}")
        if low <= number < high:
            return number
    return float(low)


def nodes_of(tree, features, losses, names, answers):
    """A fitted tree as nodes, parents first; a question whose answers are the same is not asked."""

    def answer_node(rows):
        return {"answer": answers[int(losses[rows].sum(axis=0).argmin())], "examples": int(len(rows))}

    def build(at, rows):
        """The nodes of a subtree, with numbers that count from its own first."""
        feature = tree.feature[at]
        if feature < 0:
            return [answer_node(rows)]
        column = features[rows, feature]
        yes = column.astype(np.float32) <= tree.threshold[at]
        below = build(tree.children_left[at], rows[yes])
        above = build(tree.children_right[at], rows[~yes])
        if len(below) == len(above) == 1 and below[0]["answer"] == above[0]["answer"]:
            return [{"answer": below[0]["answer"], "examples": int(len(rows))}]
        question = {
            "feature": names[feature],
            "most": short_between(float(column[yes].max()), float(column[~yes].min())),
            "yes": 1,
            "no": 1 + len(below),
        }
        for first, part in ((1, below), (1 + len(below), above)):
            for node in part:
                if "feature" in node:
                    node["yes"] += first
                    node["no"] += first
        return [question, *below, *above]

    return build(0, np.arange(len(features)))


def fit(features, losses, names, answers, limits):
    wrong = np.where(losses > AS_GOOD, losses, np.inf).min(axis=1)
    weights = np.where(np.isfinite(wrong), wrong, 0) + 1e-9
    fitted = DecisionTreeClassifier(
        max_depth=limits["depth"],
        max_leaf_nodes=limits["leaves"],
        min_samples_leaf=limits["leaf_examples"],
        random_state=0,
    ).fit(features, losses.argmin(axis=1), weights)
    return nodes_of(fitted.tree_, features, losses, names, answers)


def answers_of(nodes, features, names, answers):
    """What the nodes answer for every row."""
    place = {name: i for i, name in enumerate(names)}
    numbers = {name: i for i, name in enumerate(answers)}
    found = np.empty(len(features), dtype=int)
    for row, values in enumerate(features):
        node = nodes[0]
        while "feature" in node:
            node = nodes[node["yes"] if values[place[node["feature"]]] <= node["most"] else node["no"]]
        found[row] = numbers[node["answer"]]
    return found


def unseen_answers(features, losses, groups, names, answers, limits):
    """For every row the answer of a tree that has not seen its group: what an answer for a new row is worth."""
    folds = min(5, len(set(groups)))
    if folds < 2:
        return answers_of(fit(features, losses, names, answers, limits), features, names, answers)
    found = np.empty(len(features), dtype=int)
    for seen, unseen in GroupKFold(folds).split(features, groups=groups):
        nodes = fit(features[seen], losses[seen], names, answers, limits)
        found[unseen] = answers_of(nodes, features[unseen], names, answers)
    return found


def tree_or_constant(features, losses, groups, names, answers, limits):
    """A tree, or a single answer where trees choose worse for rows that they have not seen; and what it is taken
    to answer for rows that it has not seen."""
    unseen = unseen_answers(features, losses, groups, names, answers, limits)
    constant = int(losses.sum(axis=0).argmin())
    if losses[np.arange(len(losses)), unseen].sum() < losses[:, constant].sum():
        return fit(features, losses, names, answers, limits), unseen
    return [{"answer": answers[constant], "examples": len(losses)}], np.full(len(losses), constant)


def train(question, rows):
    """A selector from some rows of the question."""
    head, limits = question["head"], question["limits"]
    options, known_names, gathered_names = head["options"], head["known"], head["gathered"]
    known = np.array(question["known"], dtype=float)[rows]
    times = np.array(question["times"], dtype=float)[rows]  # None becomes NaN
    losses = log_losses(times)
    groups = np.array(question["groups"])[rows]
    selector = dict(head)
    selector["choose_known"], blind = tree_or_constant(known, losses, groups, known_names, options, limits)
    if not gathered_names:
        return selector
    names = known_names + gathered_names
    everything = np.hstack([known, np.array(question["gathered"], dtype=float)[rows]])
    selector["choose_all"], informed = tree_or_constant(everything, losses, groups, names, options, limits)
    best = np.nanmin(times, axis=1)
    row = np.arange(len(times))
    passes = np.array(question["gather_time"], dtype=float)[rows]
    two = log_losses(
        np.stack([best * np.exp(losses[row, blind]), passes + best * np.exp(losses[row, informed])], axis=1)
    )
    selector["gather_first"], _ = tree_or_constant(known, two, groups, known_names, ["choose", "gather"], limits)
    return selector


def main(question_path, answer_path):
    with open(question_path, encoding="utf-8") as file:
        question = json.load(file)
    folds = np.array(question["folds"])
    selectors = [train(question, np.flatnonzero(folds != fold)) for fold in range(question["fold_count"])]
    selectors.append(train(question, np.arange(len(folds))))
    with open(answer_path, "w", encoding="utf-8") as file:
        json.dump(selectors, file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
