"""Rows that a fit does not see, predicted: a family, the largest scale of each, a software stack, a
generation of devices left out of a stage's fit. What the fit then knows of them:
  known     stack and device, where a family or a scale is left out
  foreign   the device alone, where a stack is left out: its numbers are at their start values
  borrowed  the stack alone, where a device is left out: its numbers are another generation's, all of them,
            as those of a device without rows of its own are (shared/hardware/devices.cpp)
Rows of which more is unknown are no measure of any of the three. A stack without fitted numbers counts as
known."""
import math

# Whose numbers a generation would have, had it no rows: the one before it, or its sister's.
DONOR = {"a100-80": "h100", "a100-40": "h100", "h100": "a100-80", "b200": "h100", "gb200": "b200"}

CASE_OF = {"family_out": "known", "scale_out": "known", "stack_out": "foreign", "device_out": "borrowed"}


def owners(names):
    """{"a100-80": {"a100-80", "a100-40"}, …}: who shares a number with whom."""
    groups = {}
    for name in names:
        who = name.rsplit(".", 1)[0].split(",")
        for one in who:
            groups.setdefault(one, set()).update(who)
    return groups


class Folds:
    def __init__(self, fit, point, columns):
        self.fit, self.point, self.columns = fit, point, columns
        self.predictor = fit.predictor
        self.rows = fit.errors(point)[0]
        self.groups = owners(fit.names)

    def group(self, one):
        return self.groups.get(one, {one})

    def case(self, row, left_out):
        """What a fit without `left_out` knows of the row; None: neither stack nor device."""
        rest = [r for r in self.rows if r["id"] not in left_out]
        stack = row["stack"] not in self.groups or any(r["stack"] in self.group(row["stack"]) for r in rest)
        device = any(r["device"] in self.group(row["device"]) for r in rest)
        return {(True, True): "known", (False, True): "foreign", (True, False): "borrowed"}.get((stack, device))

    def borrowed(self, device, values):
        """The donor's numbers in place of the device's."""
        donor = DONOR[device]
        numbers = dict(self.predictor.devices[donor])
        for names, value in {**self.predictor.fixed, **values}.items():
            who, key = names.rsplit(".", 1)
            if donor in who.split(","):
                numbers[key] = value
        return {f"{device}.{key}": value for key, value in numbers.items()}

    def without(self, left_out, wanted):
        """The rows left out of which as much is known as is wanted."""
        ids = {row["id"] for row in self.rows if row["id"] in left_out and self.case(row, left_out) == wanted}
        if not ids:
            return []
        values = {name: math.exp(p) for name, p in
                  zip(self.fit.names, self.fit.without(left_out, self.point, self.columns))}
        if wanted == "borrowed":
            for device in sorted({r["device"] for r in self.rows if r["id"] in ids}):
                values.update(self.borrowed(device, values))
        return [row for row in self.predictor.rows(values) if row["id"] in ids]

    def parts(self, key):
        """The ids of the rows that share what `key` says of them."""
        parts = {}
        for row in self.rows:
            parts.setdefault(key(row), set()).add(row["id"])
        return [frozenset(ids) for ids in parts.values()]

    def largest(self):
        most, least = {}, {}
        for row in self.rows:
            family, gpus = row["family"], row["gpus"]
            most[family] = max(most.get(family, 0), gpus)
            least[family] = min(least.get(family, gpus), gpus)
        return frozenset(r["id"] for r in self.rows
                         if r["gpus"] == most[r["family"]] and least[r["family"]] < most[r["family"]])

    def all(self):
        """By fold, the rows as predicted."""
        folds = {
            "family_out": self.parts(lambda r: r["family"]),
            "scale_out": [self.largest()],
            "stack_out": self.parts(lambda r: min(self.group(r["stack"]))),
            "device_out": self.parts(lambda r: min(self.group(r["device"]))),
        }
        return {fold: [row for ids in parts for row in self.without(ids, CASE_OF[fold])]
                for fold, parts in folds.items()}
