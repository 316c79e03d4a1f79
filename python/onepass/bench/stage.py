"""Where cases are measured: one device with its clock, its memory, and who takes part."""

import dataclasses
import math

import onepass

from . import rows
from .clock import Absent, Clock, Contender, GpuClock, reason_of
from .contenders import PARAMETERS, TOLERANCE, Contenders, our_function, stepping
from .limits import Limits
from .plain import Plain


class HostClock(Clock):
    """What a call costs the host: many in a row, with the device idle at the start and not waited for."""

    CALLS = 200  # fewer than a stream's queue holds

    def __init__(self, settle, **options):
        super().__init__(rounds=(21, 41), **options)
        self.settle = settle

    def start(self, contender):
        contender.runs, contender.calls = contender.make(), self.CALLS
        self.turn(contender)

    def turn(self, contender):
        self.settle()
        begin = self.now()
        contender.play(self.CALLS)
        seconds = (self.now() - begin) / self.CALLS
        self.settle()
        return seconds


class Stage:
    def __init__(self, device, options):
        self.device, self.options, self.arrays = device, options, {}
        self.contenders = Contenders(device, options.peers)
        self.torch, self.numpy = self.contenders.torch, self.contenders.numpy
        rounds = {"rounds": (3, 5)} if options.quick else {}
        seconds = 0.1 if options.quick else 1.0
        self.clock = GpuClock(self.torch, seconds, **rounds) if device == "cuda" else Clock(seconds, **rounds)
        self.host_clock = HostClock(self.torch.cuda.synchronize if device == "cuda" else lambda: None, seconds=seconds)
        threads = self.torch.get_num_threads() if self.torch else onepass.machine()["threads"]
        self.plain = Plain(options.plain, threads)
        self.limits = Limits(self.torch, device, self.clock, self.plain) if self.torch else None
        self.reasons = {}  # why somebody was missing, and in how many cases

    # --------------------------------------------------------------------- a case --

    def measure(self, case):
        """A row of the record."""
        row = {"device": self.device, "section": case.section, "loss": case.loss, "mode": case.mode, "type": case.type,
               "elements": case.elements, "variant": case.variant, "unit": case.unit, "found": {}}
        try:
            if case.figure:
                row["found"] = {name: number(figure) for name, figure in case.figure().items()}
            else:
                self.fill(row, *self.with_operands(case))
        except Exception as error:  # too little memory, above all; the other cases go on
            row["missing"] = {"onepass": reason_of(error)}
        for said in (*row.get("missing", {}).items(), *row.get("notes", {}).items()):
            self.reasons[said] = self.reasons.get(said, 0) + 1
        if self.device == "cuda":
            self.clock.tidy()
        return row

    @staticmethod
    def with_operands(case):
        """Made once: where arrays happen to lie is worth a third of a loop's time on some machines, so all contenders of a
        case have the same ones."""
        operands = case.operands()
        return dataclasses.replace(case, operands=lambda: operands), operands

    def fill(self, row, case, operands):
        contenders = self.taking_part(case, operands)
        if self.device == "cuda":
            self.clock.set_size(case.elements, int(operands.bytes(case.mode)))
        clock = self.host_clock if case.on_host else self.clock
        clock.measure(contenders, min(case.seconds, clock.seconds_a_case))
        self.reject_wrong(case, contenders)
        row["bytes"] = operands.bytes(case.mode)
        row["found"] = {c.name: number(c.seconds()) for c in contenders if not c.missing}
        row["spread"] = {c.name: number(c.spread(), 2) for c in contenders if not c.missing}
        moved = {c.name: c.bytes for c in contenders if c.bytes not in (None, row["bytes"])}
        missing = {c.name: c.missing for c in contenders if c.missing}
        notes = {c.name: c.note for c in contenders if c.note and not c.missing}
        more = {"moved": moved, "goals": case.goals, "missing": missing, "notes": notes}
        row.update({key: value for key, value in more.items() if value})
        if self.options.quick:
            row.pop("goals", None)  # which are about arrays that no cache holds
        self.contenders.forget_compiled()

    def taking_part(self, case, operands):
        """Ours first, the limit last. The cases of plain loops and linear layers have ours among the others."""
        found = [] if case.section in ("plain", "linear") else [self.contenders.ours(case, operands)]
        found += [self.contenders.named(name, case, operands) for name in case.peers if name in self.options.peers]
        found += [other(case) for other in case.others]
        if case.with_limit and self.limits and "limit" in self.options.peers:
            tensors = operands.sets[0][0]
            room = operands.gradient if len(operands.sets) == 1 else lambda: self.torch.empty_like(tensors)
            found.append(self.limits.contender(operands.all_sets(), None if case.mode == "forward" else room))
        return found

    @staticmethod
    def reject_wrong(case, contenders):
        """A peer that computes something else is no peer."""
        ours = contenders[0].value
        for contender in contenders[1:]:
            if None not in (ours, contender.value) and contender.name.startswith(("numpy", "torch", "jax")):
                if not abs(contender.value - ours) <= TOLERANCE[case.type] * abs(ours):
                    contender.missing = f"its loss is {contender.value:.6g}, ours {ours:.6g}"

    # ------------------------------------------------------------- other contenders --

    def empty_kernel(self, _):
        """What a launch takes."""
        return Contender("an empty kernel", lambda: [lambda: self.torch.cuda._sleep(0)])

    def empty_function(self, case):
        """What PyTorch itself takes for a step of anything that is not in its own C++."""
        def make():
            p, t = case.operands().sets[0]
            value, gradient = self.torch.zeros((), device=p.device), self.torch.zeros_like(p)

            class Empty(self.torch.autograd.Function):
                @staticmethod
                def forward(ctx, p, t):
                    return value.view(())

                @staticmethod
                def backward(ctx, upstream):
                    return gradient, None

            return [stepping(Empty.apply, p, t)]

        return Contender("an empty Function", make)

    def plain_contender(self, name, job, case, who="plain", threads=None, tuned=False):
        """A loop in C over a case's operands."""
        def make():
            operands = case.operands()
            p, t = operands.sets[0]
            gradient = operands.gradient() if job in ("both", "backward") else None
            names = [*PARAMETERS.get(case.loss, {}).values()]
            default = [parameter["default"] for loss in onepass.losses() if loss["name"] == case.loss
                       for parameter in loss["parameters"]]
            return [self.plain.looping(who, job, (p, t), gradient, case.loss, float((names or default or [0.0])[0]),
                                       threads, tuned)]

        return Contender(name, make, loops=True)

    def plain_contenders(self, mode, threads):
        """Functions of a case: the library in C, and the loops that do the same, or the gradient alone."""
        def maker(name, job, **options):
            return lambda case: self.plain_contender(name, job, case, threads=threads, **options)

        yield maker("onepass", mode, who="onepass")
        yield maker("plain loop", mode)
        if mode == "forward":
            yield maker("plain loop, tuned flags", mode, tuned=True)
        if mode == "both":
            yield maker("plain loop, gradient alone", "backward")

    # ------------------------------------------------------------------ other figures --

    def library_memory(self, losses):
        """Bytes of the device that the library itself took for calls of several kinds. Only a first run can tell."""
        torch = self.torch
        p, t = (torch.rand(1 << 20, device="cuda") for _ in range(2))
        torch.empty(64 << 20, device="cuda")  # which PyTorch keeps for the results
        torch.cuda.synchronize()
        before = torch.cuda.mem_get_info()[0]
        for loss in losses:
            our_function(loss)(p, t)
            onepass.value_and_grad(loss, p, t)
        torch.cuda.synchronize()
        return before - torch.cuda.mem_get_info()[0]

    def peak_memory(self, tensors):
        """Bytes that a training step has allocated at its peak beyond its inputs and the gradient that it is for."""
        torch, found = self.torch, {}
        for name, function in (("onepass", onepass.mse_loss), ("torch eager", torch.nn.functional.mse_loss)):
            step = stepping(function, *tensors)
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            step()
            torch.cuda.synchronize()
            found[name] = max(0, torch.cuda.max_memory_allocated() - before - tensors[0].numel() * 4)
        return found

    def peaks(self, ours, theirs, tensors):
        """The same of a loss over rows, and of PyTorch compiled."""
        found = {"onepass": rows.peak_memory(self.torch, ours, tensors),
                 "torch eager": rows.peak_memory(self.torch, theirs, tensors)}
        if "torch.compile" in self.options.peers:
            compiled = self.torch.compile(theirs, dynamic=False, fullgraph=True)
            found["torch.compile"] = rows.peak_memory(self.torch, compiled, tensors)
        self.contenders.forget_compiled()
        return found

    def sum_errors(self, loss, tensors):
        """In units of the last place of the float sum: against the float terms added up in double."""
        torch = self.torch
        terms = self.contenders.reference.by_expression(loss)
        pieces = zip(*(tensor.split(1 << 22) for tensor in tensors))
        exact = torch.stack([terms(*piece).double().sum() for piece in pieces]).sum()
        rounded = exact.float()
        unit = float(rounded.nextafter(torch.tensor(math.inf)) - rounded)
        found = {"onepass": float(our_function(loss)(*tensors, reduction="sum"))}
        try:
            loop = self.plain.looping("plain", "forward", tensors, loss=loss, parameter=1.0)
            loop(1)
            found["plain loop"] = loop.work.value
        except Absent:
            pass
        return {name: abs(value - float(rounded)) / unit for name, value in found.items()}


def number(x, digits=6):
    return float(f"{x:.{digits}g}")
