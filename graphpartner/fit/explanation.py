"""What was decided and why, as sentences for a person, with the validation figures behind them."""

from collections.abc import Iterator

from graphpartner.fit.candidates import Candidate, Traits
from graphpartner.fit.tuned import Tuned


def explained(tuned: Tuned, traits: Traits, checked: str = "") -> Iterator[str]:
    """Whether the graph helps, what the mixture is, whether it is enhanced, how it was calibrated.

    Args:
        tuned: what was decided.
        traits: what was known of the graph before.
        checked: which nodes calibration has seen besides those validated on.
    """
    found, judged = tuned.validation, f"on {tuned.judges.numel():,} validation nodes"
    if traits.has_edges:
        gain = found["mixture"] - found["mlp"]
        verdict = "helps" if gain > 0.005 else "hardly matters" if gain > -0.005 else "hurts"
        yield f"The graph {verdict}: {found['mixture']:.1%} with it, {found['mlp']:.1%} without, {judged}."
    shares = sorted(tuned.weights.items(), key=lambda each: -each[1])
    names = [f"{_described(tuned.candidates[name])} ({weight:.0%})" for name, weight in shares]
    if tuned.spread[1]:
        names.append(f"label propagation ({tuned.spread[1]:.0%})")
    what = f"a mixture of {len(tuned.outcomes)} runs: {', '.join(names)}" if shares else "label propagation alone"
    yield f"The model is {what}."
    if traits.enhance:
        yield _enhancement(tuned)
    yield f"Probabilities are calibrated with temperature {tuned.temperature:.2f}, {judged}{checked}."


def _described(candidate: Candidate) -> str:
    settings = candidate.settings
    if candidate.alone:
        return f"{'a linear model' if candidate.linear else 'an MLP'} that looks at no edge"
    what = ["linear"] if candidate.linear else []
    if settings.alpha < 1:
        what.append(f"{settings.num_steps} propagation steps, α = {settings.alpha:g}")
    if settings.beta < 1:
        what.append(f"enhanced with β = {settings.beta:g}")
    if candidate.hops:
        what.append(f"features of {candidate.hops} hop{'s' * (candidate.hops > 1)}")
    if candidate.links:
        what.append("links as features")
    return " + ".join(what)


def _enhancement(tuned: Tuned) -> str:
    pairs = [(name, name.removesuffix("-enhanced")) for name in tuned.seen if name.endswith("-enhanced")]
    both = [(tuned.seen[one], tuned.seen[other]) for one, other in pairs if other in tuned.seen]
    used = any(name.endswith("-enhanced") for name in tuned.weights)
    seen = f": {both[0][0]:.1%} with it, {both[0][1]:.1%} without, all else equal" if both else ""
    return f"Enhancement is {'part of the mixture' if used else 'not used'}{seen}."
