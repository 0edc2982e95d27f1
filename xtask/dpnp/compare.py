"""Compares two files of results.py's, result by result: compare.py THEIRS OURS. Ends with 1 if any differs."""
import sys

import numpy


def difference(theirs, ours):
    """None if they are the same, bit by bit; else by how much they differ, in words."""
    if theirs.dtype != ours.dtype or theirs.shape != ours.shape:
        return f"{theirs.dtype}{theirs.shape} and {ours.dtype}{ours.shape}"
    if theirs.tobytes() == ours.tobytes():
        return None
    if theirs.dtype.kind not in "fc":
        return f"{theirs.ravel()[:4]} and {ours.ravel()[:4]}"
    if not numpy.array_equal(numpy.isnan(theirs), numpy.isnan(ours)):
        return "not numbers in other places"
    gap = numpy.nanmax(numpy.abs(theirs - ours), initial=0.0)
    scale = numpy.nanmax(numpy.abs(theirs), initial=0.0)
    if gap <= 64 * numpy.finfo(theirs.dtype).eps * max(scale, 1.0):
        # Sums of threads are added in the order in which these end.
        return ""
    return f"by {gap} of {scale}"


theirs, ours = (numpy.load(name) for name in sys.argv[1:3])
same, close, other = 0, [], [f"{name}: only in one" for name in set(theirs) ^ set(ours)]
for name in sorted(set(theirs) & set(ours)):
    match difference(theirs[name], ours[name]):
        case None:
            same += 1
        case "":
            close.append(name)
        case words:
            other.append(f"{name}: {words}")
print(f"{same} results are the same bit by bit, {len(close)} within rounding, {len(other)} differ")
print("within rounding:", ", ".join(close) or "none")
for line in other:
    print(line)
if other or not same:
    sys.exit(1)
