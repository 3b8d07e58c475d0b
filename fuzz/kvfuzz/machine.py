"""The Hypothesis driver: a rule-based state machine that runs an implementation in lockstep with the model.

    class TestMyPool(PoolMachine.TestCase): ...          # kvpool at the default scope

    class MyMachine(PoolMachine):                        # your own pool
        target = "my_package.adapter:MyAdapter"
        scope = PoolScope(blocks=(5,), holders=2)

    TestMyPool = MyMachine.TestCase

Every action kind of the scope becomes a rule; a rule draws one of the actions that make sense in the present state, so
no run is thrown away for an unmet precondition. Add rules and invariants in a subclass as with any machine; `step`
executes an action of your own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from kvfuzz.adapter import Adapter, in_dialect
from kvfuzz.coverage import Coverage
from kvfuzz.levels import level_named
from kvfuzz.lockstep import Failure, Lockstep
from kvfuzz.story import table, tell
from kvfuzz.targets import load_target
from kvspec import ActionKind, Model
from kvspec.pool import PoolScope


class SpecificationBroken(AssertionError):
    """The implementation differs from the specification. Carries what the minimiser needs."""

    def __init__(self, model: Model, actions: list[Any], failure: Failure) -> None:
        self.model = model
        self.actions = tuple(actions)
        self.failure = failure
        super().__init__(f"{failure.headline}\n{table(tell(model, actions, failure))}")


class LockstepMachine(RuleBasedStateMachine):
    """Base of the machines of all levels. `target` is a target's name or a function that makes an adapter."""

    level: ClassVar[str] = ""
    target: ClassVar[Any] = ""
    scope: ClassVar[Any] = None
    coverage: ClassVar[Coverage | None] = None
    _model: ClassVar[Model]

    def __init_subclass__(cls, **options: Any) -> None:
        """One rule for each action kind that takes part at the scope."""
        super().__init_subclass__(**options)
        if not cls.level or cls.scope is None:
            return
        cls.scope = in_dialect(cls.scope, cls._make_adapter())
        cls._model = level_named(cls.level).make_model(cls.scope)
        for kind in cls._model.actions:
            setattr(cls, kind.name, rule(data=st.data())(_rule_body(kind)))
        # Hypothesis' explain phase varies a failing run for minutes to comment it; kvproof's story does that at once.
        cls.TestCase.settings = settings(deadline=None, phases=[phase for phase in Phase if phase is not Phase.explain])
        if any(True for _ in _misuse(cls._model, cls._model.initial())):
            setattr(cls, "misuse", rule(data=st.data())(_misuse_body))  # noqa: B010

    def __init__(self) -> None:
        super().__init__()
        self.lockstep = Lockstep(self._model, self._make_adapter())
        self.actions: list[Any] = []
        failure = self.lockstep.start()
        if failure is not None:
            raise SpecificationBroken(self._model, [], failure)
        if self.coverage is not None:
            self.coverage.start()

    @classmethod
    def _make_adapter(cls) -> Adapter:
        maker: Any = cls.target
        adapter: Adapter = load_target(maker) if isinstance(maker, str) else maker()
        return adapter

    def step(self, action: Any) -> None:
        """Execute one action on both sides. Raises SpecificationBroken."""
        failure = self.lockstep.apply(action)
        if failure is not None:
            raise SpecificationBroken(self._model, [*self.actions, action], failure)
        step = self.lockstep.last
        if step is not None:
            self.actions.append(action)
            if self.coverage is not None:
                self.coverage.record(action, step)


def _is_refused(model: Model, state: Any, action: Any) -> bool:
    call = model.resolve(state, action)
    return call is not None and model.transitions(state, call)[0].outcome.label == "refused"


def _rule_body(kind: ActionKind) -> Callable[[LockstepMachine, Any], None]:
    def body(self: LockstepMachine, data: Any) -> None:
        model, state = self._model, self.lockstep.state
        choices = [
            a for a in kind.every(state) if model.resolve(state, a) is not None and not _is_refused(model, state, a)
        ]
        if choices:
            self.step(data.draw(st.sampled_from(choices), label=kind.name))

    body.__name__ = kind.name
    body.__doc__ = f"One {kind.name} action that makes sense now."
    return body


def _misuse(model: Model, state: Any) -> Iterator[Any]:
    return (action for action in model.enabled(state) if _is_refused(model, state, action))


def _misuse_body(self: LockstepMachine, data: Any) -> None:
    """One action that must be refused now. A rule of its own, or misuse would crowd out what gets somewhere."""
    choices = list(_misuse(self._model, self.lockstep.state))
    if choices:
        self.step(data.draw(st.sampled_from(choices), label="misuse"))


class PoolMachine(LockstepMachine):
    """A block pool against the pool level of the specification."""

    level = "pool"
    target = "kvpool"
    scope = PoolScope()


class MachineResult:
    """What a run of the machine gave: `failure` and `actions` as for the walk, and the coverage."""

    def __init__(self, failure: Failure | None, actions: tuple[Any, ...], coverage: Coverage) -> None:
        self.failure = failure
        self.actions = actions
        self.coverage = coverage


def run_machine(
    level: str, make_adapter: Callable[[], Adapter], scope: Any, seed: int, examples: int, steps: int
) -> MachineResult:
    """Run the machine without pytest: `examples` runs of up to `steps` rules.

    The failure is as Hypothesis found it: kvproof's own minimiser is faster than its shrinker by one to two orders of
    magnitude and ends with a proof.
    """
    model = level_named(level).make_model(scope)
    coverage = Coverage(model, make_adapter().limits)
    namespace = {
        "level": level,
        "target": staticmethod(make_adapter),
        "scope": scope,
        "coverage": coverage,
        "__module__": __name__,
    }
    machine = type("KvproofMachine", (LockstepMachine,), namespace)
    profile = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    try:
        run_state_machine_as_test(hypothesis_seed(seed)(machine), settings=profile)
    except SpecificationBroken as broken:
        return MachineResult(broken.failure, broken.actions, coverage)
    return MachineResult(None, (), coverage)
