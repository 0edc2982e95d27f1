"""Compares what became of each of dpnp's own tests in two runs: outcomes.py THEIRS.xml OURS.xml. Ends with 1 if any differs."""
import sys
from xml.etree import ElementTree


def outcomes(file):
    def outcome(case):
        return next((part.tag for part in case if part.tag in ("failure", "error", "skipped")), "passed")

    return {f"{case.get('classname')}.{case.get('name')}": outcome(case) for case in ElementTree.parse(file).iter("testcase")}


theirs, ours = (outcomes(name) for name in sys.argv[1:3])
count = {name: list(ours.values()).count(name) for name in sorted(set(ours.values()))}
print(f"{len(ours)} tests on ours: {count}")
other = [name for name in sorted(set(theirs) | set(ours)) if theirs.get(name) != ours.get(name)]
for name in other:
    print(f"{name}: {theirs.get(name)} on theirs, {ours.get(name)} on ours")
if other or not ours.keys():
    sys.exit(1)
