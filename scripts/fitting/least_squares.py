"""Least squares of log(predicted / measured) over the logarithms of a stage's parameters, by
Levenberg-Marquardt with a weak prior. Standard library only."""
import math

# A parameter at e times its start value has the same penalty as this error in every row of a block:
# parameters that the rows do not determine stay at their published values.
PRIOR = 0.03


def weights(rows, left_out):
    """All blocks have equal weight."""
    count = {}
    for row in rows:
        if row["id"] not in left_out:
            count[row["block"]] = count.get(row["block"], 0) + 1
    return [0.0 if r["id"] in left_out else 1 / math.sqrt(count[r["block"]]) for r in rows]


def solve(matrix, right):
    """Gaussian elimination with pivoting."""
    n = len(right)
    rows = [matrix[i][:] + [right[i]] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, n):
            factor = rows[r][i] / rows[i][i]
            for c in range(i, n + 1):
                rows[r][c] -= factor * rows[i][c]
    answer = [0.0] * n
    for i in reversed(range(n)):
        answer[i] = (rows[i][n] - sum(rows[i][c] * answer[c] for c in range(i + 1, n))) / rows[i][i]
    return answer


class Fit:
    """The parameters of the stage; their logarithms are the unknowns."""

    def __init__(self, predictor):
        self.predictor = predictor
        self.names = list(predictor.stage["start"])
        self.prior = [math.log(predictor.stage["start"][n]) for n in self.names]

    def values(self, point):
        return {n: float(f"{math.exp(p):.3g}") for n, p in zip(self.names, point)}

    def errors(self, point):
        rows = self.predictor.rows({n: math.exp(p) for n, p in zip(self.names, point)})
        return rows, [math.log1p(r["error"]) for r in rows]

    def slopes(self, point, here):
        """Derivatives of the error of each row, by parameter."""
        columns = []
        for i in range(len(point)):
            moved = point[:]
            moved[i] += 1e-2
            columns.append([(a - b) / 1e-2 for a, b in zip(self.errors(moved)[1], here)])
        return columns

    def cost(self, point, here, weight):
        away = sum((PRIOR * (p - q)) ** 2 for p, q in zip(point, self.prior))
        return away + sum((w * e) ** 2 for w, e in zip(weight, here))

    def step(self, point, here, columns, weight, damping):
        squares = [w * w for w in weight]
        gradient = [sum(s * c * e for s, c, e in zip(squares, column, here))
                    + PRIOR ** 2 * (p - q) for column, p, q in zip(columns, point, self.prior)]
        normal = [[sum(s * a * b for s, a, b in zip(squares, x, y)) for y in columns] for x in columns]
        typical = sum(normal[i][i] for i in range(len(point))) / len(point)
        for i in range(len(point)):
            normal[i][i] += PRIOR ** 2 + damping * (normal[i][i] + 1e-3 * typical)
        return [max(-0.7, min(0.7, s)) for s in solve(normal, [-g for g in gradient])]

    def full(self, steps=10):
        point = self.prior[:]
        rows, here = self.errors(point)
        weight, damping = weights(rows, frozenset()), 1e-2
        cost = self.cost(point, here, weight)
        columns = self.slopes(point, here)
        for _ in range(steps):
            better = False
            while damping < 1e3 and not better:
                step = self.step(point, here, columns, weight, damping)
                tried = [p + s for p, s in zip(point, step)]
                there = self.errors(tried)[1]
                tried_cost = self.cost(tried, there, weight)
                better = tried_cost < cost
                if not better:
                    damping *= 4
            if not better:
                break
            gained = (cost - tried_cost) / cost
            point, here, cost, damping = tried, there, tried_cost, max(1e-4, damping / 4)
            columns = self.slopes(point, here)
            if gained < 1e-3:
                break
        return point, columns

    def without(self, left_out, point, columns):
        """The point fitted to the other rows, from the fit to all: its slopes hold nearby, so that a step
        costs one prediction. Only steps that fit the other rows better are taken. Parameters that move
        none of the other rows begin at their start values."""
        rows, _ = self.errors(point)
        seen = [i for i, row in enumerate(rows) if row["id"] not in left_out]
        point = [p if any(abs(column[i]) > 1e-4 for i in seen) else q
                 for p, q, column in zip(point, self.prior, columns)]
        rows, here = self.errors(point)
        weight = weights(rows, left_out)
        cost, damping = self.cost(point, here, weight), 1e-3
        for _ in range(8):
            step = self.step(point, here, columns, weight, damping)
            if max(abs(s) for s in step) < 2e-3 or damping > 10:
                break
            tried = [p + s for p, s in zip(point, step)]
            tried_rows, there = self.errors(tried)
            tried_cost = self.cost(tried, there, weight)
            if tried_cost < cost:
                point, rows, here, cost = tried, tried_rows, there, tried_cost
            else:
                damping *= 10
        return point
