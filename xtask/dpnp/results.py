"""What dpnp computes: arithmetic, reductions, sorting, linear algebra and more, each result as NumPy has it, in one file.

results.py FILE; which adapter computes is the environment's choice.
"""
import sys

import dpctl
import dpnp
import numpy

SIZES = [1, 7, 1000, 65_537]
UNARY = ["negative", "absolute", "sign", "square", "sqrt", "exp", "log1p", "sin", "cos", "tan", "tanh", "arctan",
         "floor", "ceil", "rint", "isnan", "isfinite", "reciprocal", "cbrt", "exp2", "sinh", "arcsinh"]
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "hypot", "arctan2", "fmod", "copysign",
          "less", "equal", "logical_and", "power"]
WHOLE = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "floor_divide", "remainder", "gcd"]
REDUCED = ["sum", "prod", "max", "min", "mean", "std", "var", "argmax", "argmin", "any", "all", "cumsum", "count_nonzero",
           "nansum", "logsumexp"]
SORTED = ["sort", "argsort", "unique", "diff"]
MATRICES = ["det", "inv", "eigvalsh", "qr", "svd", "cholesky", "pinv", "matrix_rank", "norm", "slogdet"]


def results():
    draw = numpy.random.default_rng(15)
    for kind in ["f4", "f8", "i4", "i8", "c8"]:
        for size in SIZES:
            first = draw.integers(1, 100, size).astype(kind)
            if kind[0] == "f":
                first = (first * draw.random(size)).astype(kind)
            second = draw.integers(1, 9, size).astype(kind)
            ours = dpnp.asarray(first), dpnp.asarray(second)
            named = lambda name: f"{name} {kind} {size}"
            for name in UNARY:
                if kind[0] == "c" and name in ("floor", "ceil", "cbrt"):
                    continue
                yield named(name), lambda: getattr(dpnp, name)(ours[0])
            for name in BINARY:
                if kind[0] == "c" and name not in ("add", "subtract", "multiply", "divide", "equal", "logical_and", "power"):
                    continue
                yield named(name), lambda: getattr(dpnp, name)(*ours)
            for name in WHOLE if kind[0] == "i" else []:
                yield named(name), lambda: getattr(dpnp, name)(*ours)
            for name in REDUCED:
                if kind[0] == "c" and name == "logsumexp":
                    continue
                yield named(name), lambda: getattr(dpnp, name)(ours[0])
            for name in SORTED:
                yield named(name), lambda: getattr(dpnp, name)(ours[0])
            yield named("where"), lambda: dpnp.where(ours[0] > ours[1], *ours) if kind[0] != "c" else ours[0]
            yield named("take"), lambda: ours[0][dpnp.arange(0, size, 3)]
            yield named("dot"), lambda: dpnp.dot(*ours)
    for kind in ["f4", "f8", "c8", "c16"]:
        for side in [3, 16, 65]:
            square = draw.random((side, side)).astype(kind)
            if kind[0] == "c":
                square = square + 1j * draw.random((side, side)).astype(kind)
            square = (square @ square.conj().T + side * numpy.eye(side)).astype(kind)
            matrix, vector = dpnp.asarray(square), dpnp.asarray(square[0])
            for name in MATRICES:
                yield f"{name} {kind} {side}", lambda: getattr(dpnp.linalg, name)(matrix)
            yield f"solve {kind} {side}", lambda: dpnp.linalg.solve(matrix, vector)
            yield f"matmul {kind} {side}", lambda: matrix @ matrix
            yield f"fft {kind} {side}", lambda: dpnp.fft.fft(matrix)
            yield f"einsum {kind} {side}", lambda: dpnp.einsum("ij,jk->ik", matrix, matrix)
    dpnp.random.seed(15)
    yield "random", lambda: dpnp.random.random(10_000)
    yield "histogram", lambda: dpnp.histogram(dpnp.arange(10_000) % 37, bins=10)


def on_host(value):
    if isinstance(value, tuple):
        return [numpy.asarray(dpnp.asnumpy(one)) for one in value]
    return [numpy.asarray(dpnp.asnumpy(value))]


def main():
    all = {}
    for name, compute in results():
        try:
            parts = on_host(compute())
        except (TypeError, ValueError, NotImplementedError) as error:  # dpnp's own words, which are a result
            parts = [numpy.array(f"{type(error).__name__}: {error}")]
        for number, part in enumerate(parts):
            all[f"{name} [{number}]"] = part
    numpy.savez(sys.argv[1], **all)
    device = dpctl.SyclDevice()
    print(f"{len(all)} results on {device.name}, {device.backend}")


if __name__ == "__main__":
    main()
