"""Predicts rows that a fit did not see: a family, the largest scale of each family, a software stack,
or a generation of devices is left out of a stage's fit. Rows are classified by what the fit knows:
  known     stack and device, where a family or a scale is left out
  foreign   only the device, where a stack is left out: its numbers are at their start values
  borrowed  only the stack, where a device is left out: all its numbers are those of another
            generation, as for a device without rows of its own (shared/hardware/devices)
Rows of which less is known belong to none of the classes. A stack without fitted numbers counts as
known."""
import math

# The generation whose numbers are used for a generation without rows: the previous or a similar one.
DONOR = {"a100-80": "h100", "a100-40": "h100", "h100": "a100-80", "b200": "h100", "gb200": "b200",
         "gb300": "gb200"}

CASE_OF = {"family_out": "known", "scale_out": "known", "stack_out": "foreign", "device_out": "borrowed"}


def owners(names):
    """{"a100-80": {"a100-80", "a100-40"}, …}: devices that share a number."""
    groups = {}
    for name in names:
        devices_of_name = name.rsplit(".", 1)[0].split(",")
        for one in devices_of_name:
            groups.setdefault(one, set()).update(devices_of_name)
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
        """The class of the row for a fit without `left_out`; None: neither stack nor device is known."""
        rest = [r for r in self.rows if r["id"] not in left_out]
        stack = row["stack"] not in self.groups or any(r["stack"] in self.group(row["stack"]) for r in rest)
        device = any(r["device"] in self.group(row["device"]) for r in rest)
        return {(True, True): "known", (False, True): "foreign", (True, False): "borrowed"}.get((stack, device))

    def borrowed(self, device, values):
        """The donor's numbers instead of the device's."""
        donor = DONOR[device]
        numbers = dict(self.predictor.devices[donor])
        for names, value in {**self.predictor.fixed, **values}.items():
            devices_of_name, key = names.rsplit(".", 1)
            if donor in devices_of_name.split(","):
                numbers[key] = value
        return {f"{device}.{key}": value for key, value in numbers.items()}

    def without(self, left_out, wanted):
        """The rows that were left out and have the given class."""
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
        """Groups the ids of rows by `key`."""
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
        """The predicted rows by fold."""
        folds = {
            "family_out": self.parts(lambda r: r["family"]),
            "scale_out": [self.largest()],
            "stack_out": self.parts(lambda r: min(self.group(r["stack"]))),
            "device_out": self.parts(lambda r: min(self.group(r["device"]))),
        }
        return {fold: [row for ids in parts for row in self.without(ids, CASE_OF[fold])]
                for fold, parts in folds.items()}
