"""Fits the widths of intervals to the errors of rows that a fit did not see (scripts/fitting/folds.py)
and of rows that belong to no fit. There are two widths: of the step of one layout, and of the
difference of two layouts. All errors are logarithms.
  one layout   scale² = residual² + Σ effect², residual by calibration basis (known, foreign,
               borrowed), the effects of the errors that the profile states; that of the experts'
               GEMMs in proportion
  difference   scale² = Σ (effect - effect)² + layout² · d + tensor² · t, with d and t doublings
               between the layouts
Errors over their scale follow Student's t distribution. Maximum likelihood, a row weighs
1 / √(rows of its block with its basis), with a weak prior. Widths are given for all rows, and again
without each block, or family of pairs: those are used to judge a width."""
import math

FREEDOM = 5
FOLDS = {"family_out": "known", "scale_out": "known", "stack_out": "foreign", "device_out": "borrowed"}
EXPERTS = "grouped_efficiency"

# Priors for widths that the rows do not determine; a factor of e has the penalty of one row that is one deviation off.
START = {"known": 0.05, "foreign": 0.1, "borrowed": 0.2, "experts": 0.2, "one": 0.1,
         "layout": 0.03, "tensor": 0.05}
WEAK = 0.7


def student(error, squares):
    """-ln of the density, up to a constant."""
    return 0.5 * math.log(squares) + (FREEDOM + 1) / 2 * math.log1p(error * error / squares / FREEDOM)


def minimum(cost, names):
    """Minimizes by steps along one logarithm at a time, halved if no step improves."""
    point = {name: math.log(START[name]) for name in names}

    def with_prior(at):
        away = sum(((at[name] - math.log(START[name])) / WEAK) ** 2 / 2 for name in names)
        return away + cost({name: math.exp(at[name]) for name in names})

    best, step = with_prior(point), 0.5
    while step > 0.01:
        better = False
        for name in names:
            for move in (step, -step):
                tried = {**point, name: point[name] + move}
                value = with_prior(tried)
                if value < best - 1e-9:
                    point, best, better = tried, value, True
                    break
        if not better:
            step /= 2
    return {name: round(math.exp(value), 4) for name, value in point.items()}


class Claim:
    def __init__(self, row, footing, error, stated):
        self.id, self.block, self.footing, self.error = row["id"], row["block"], footing, error
        self.fixed = sum(e * e for key, e in row["effects"].items() if key != EXPERTS)
        self.experts = (row["effects"].get(EXPERTS, 0) / stated) ** 2

    def residual(self, widths):
        if self.footing == "foreign and borrowed":
            return widths["foreign"] ** 2 + widths["borrowed"] ** 2
        return widths[self.footing] ** 2

    def squares(self, widths):
        return self.residual(widths) + self.fixed + widths["experts"] ** 2 * self.experts


def claims_of(rows, unseen, stated):
    claims = []
    for row in rows.values():
        folds = [fold for fold in FOLDS if row["id"] in unseen.get(fold, {})]
        claims += [Claim(row, FOLDS[fold], unseen[fold][row["id"]], stated) for fold in folds]
        if not folds:
            claims.append(Claim(row, row["footing"], math.log1p(row["error"]), stated))
    return claims


def weighed(claims):
    count = {}
    for claim in claims:
        key = claim.block, claim.footing
        count[key] = count.get(key, 0) + 1
    return [(claim, count[claim.block, claim.footing] ** -0.5) for claim in claims]


def fit_steps(claims):
    of = weighed(claims)
    found = minimum(lambda w: sum(k * student(c.error, c.squares(w)) for c, k in of),
                    ["known", "foreign", "borrowed", "experts"])
    found.update(minimum(lambda w: sum(k * student(c.error, w["one"] ** 2) for c, k in of), ["one"]))
    return found


class Pair:
    def __init__(self, pair, rows, errors):
        first, second = rows[pair["first"]], rows[pair["second"]]
        self.family, self.other, self.tensor = first["family"], pair["other"], pair["tensor"]
        self.error = errors[second["id"]] - errors[first["id"]]
        self.parameters = sum((first["effects"][key] - second["effects"][key]) ** 2 for key in first["effects"])

    def squares(self, widths):
        return (self.parameters + widths["layout"] ** 2 * self.other + widths["tensor"] ** 2 * self.tensor
                + 1e-8)  # for layouts without a counted difference


def pairs_of(pairs, rows, unseen):
    """True if both are of the same fold, or both of no fit."""
    errors = dict(unseen.get("family_out", {}))
    left_out = {row for fold in unseen.values() for row in fold}
    errors.update({i: math.log1p(row["error"]) for i, row in rows.items() if i not in left_out})
    return [Pair(pair, rows, errors) for pair in pairs
            if pair["first"] in errors and pair["second"] in errors
            and (pair["first"] in left_out) == (pair["second"] in left_out)]


def fit_pairs(pairs):
    return minimum(lambda w: sum(student(p.error, p.squares(w)) for p in pairs), ["layout", "tensor"])


def fit_widths(answer, unseen):
    """Widths from the output of `polyphony validate` on every row: all, without each block, without each
    family's pairs."""
    rows = {row["id"]: row for row in answer["rows"]
            if "effects" in row and "duplicate_of" not in row and "outlier" not in row}
    claims = claims_of(rows, unseen, answer["experts"])
    pairs = pairs_of(answer["pairs"], rows, unseen)
    steps, orders = fit_steps(claims), fit_pairs(pairs)
    blocks = {block: {**fit_steps([c for c in claims if c.block != block]), **orders}
              for block in sorted({c.block for c in claims})}
    families = {family: {**steps, **fit_pairs([p for p in pairs if p.family != family])}
                for family in sorted({p.family for p in pairs})}
    return {**steps, **orders}, blocks, families
