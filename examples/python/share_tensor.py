"""An array that two processes read and write in turn, with nothing copied.

    python share_tensor.py [numpy | torch | cupy]

The array is one that the library made itself where it is on a GPU, and there only the two processes' streams wait for each
other, by two shared events; the processes do not. On the CPU it comes from `causeway_ipc.empty`, and an event stands for
what its process has done.
"""

import contextlib
import multiprocessing
import sys

import causeway_ipc

COUNT, ROUNDS = 1 << 16, 100


class Numpy:
    device = stream = None

    def __init__(self):
        self.arange = imported("numpy").arange

    def make(self):
        array = causeway_ipc.empty(COUNT, "int64").numpy()
        array[:] = self.arange(COUNT)
        return array

    def of(self, shared):
        return shared.numpy()

    def at_work(self):
        return contextlib.nullcontext()

    def wrong(self, array, added):
        """How many elements are not what both processes have made of them."""
        return (array != self.arange(COUNT) + added).sum()

    def sum(self, counts):
        with self.at_work():  # a number is read in the order of the current stream, which no other stream waits for
            return sum(int(each) for each in counts)


class Torch(Numpy):
    def __init__(self):
        self.torch = imported("torch")
        self.place = "cuda" if self.torch.cuda.is_available() else "cpu"
        if self.place == "cuda":
            self.device, self.stream = "cuda", self.torch.cuda.Stream()

    def arange(self, count):
        return self.torch.arange(count, device=self.place)

    def make(self):
        if self.device:
            return self.arange(COUNT)
        tensor = causeway_ipc.empty(COUNT, "int64").torch()
        return tensor.copy_(self.arange(COUNT))

    def of(self, shared):
        return shared.torch()

    def at_work(self):
        return self.torch.cuda.stream(self.stream) if self.stream else contextlib.nullcontext()


class Cupy(Numpy):
    def __init__(self):
        self.cupy = imported("cupy")
        self.arange, self.device, self.stream = self.cupy.arange, "cuda", self.cupy.cuda.Stream(non_blocking=True)

    def make(self):
        return self.arange(COUNT)

    def of(self, shared):
        return shared.cupy()

    def at_work(self):
        return self.stream


LIBRARIES = {"numpy": Numpy, "torch": Torch, "cupy": Cupy}


def imported(name):
    try:
        return __import__(name)
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(0)


def other(name, pipe):
    """The second process adds 2 in each round."""
    library = LIBRARIES[name]()
    ours = causeway_ipc.Event(library.device)
    array_ticket, event_ticket = pipe.recv()
    array, theirs = library.of(causeway_ipc.open(array_ticket)), causeway_ipc.open(event_ticket)
    with causeway_ipc.share(ours) as export:
        pipe.send(export.ticket)
        wrong = []
        while pipe.recv() == "go":
            theirs.wait(library.stream)
            with library.at_work():
                wrong.append(library.wrong(array, 3 * len(wrong) + 1))
                array += 2
            ours.record(library.stream)
            pipe.send("submitted")
        pipe.send(library.sum(wrong))


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "numpy"
    if name not in LIBRARIES:
        sys.exit(__doc__)
    library = LIBRARIES[name]()
    with library.at_work():
        array = library.make()
    ours = causeway_ipc.Event(library.device)
    ours.record(library.stream)
    ours.synchronize()  # what made the array is done
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=other, args=(name, theirs))
    process.start()
    with causeway_ipc.share(array) as memory, causeway_ipc.share(ours) as event:
        pipe.send((memory.ticket, event.ticket))
        event_of_other = causeway_ipc.open(pipe.recv())
        wrong = []
        for number in range(ROUNDS):
            with library.at_work():
                array += 1
            ours.record(library.stream)
            pipe.send("go")
            pipe.recv()  # a wait is for what was submitted before it
            event_of_other.wait(library.stream)
            with library.at_work():
                wrong.append(library.wrong(array, 3 * (number + 1)))
        pipe.send("end")
        total = library.sum(wrong) + pipe.recv()
    process.join()
    if process.exitcode or total:
        sys.exit(f"{name}: {total} elements were wrong")
    print(f"{name} on {library.device or 'the CPU'}: {COUNT} elements, {ROUNDS} rounds, written and read by both processes: right")


if __name__ == "__main__":
    main()
