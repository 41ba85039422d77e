"""A model's opinion: the reward that a posterior, trained on the log, expects of a policy.

It needs no propensities and has none of their guarantees: it is as good as the posterior's kernel
and noise are.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from oclok.offline.estimate import Estimate, OverlapWarning
from oclok.offline.estimators import decide
from oclok.offline.log import Log
from oclok.policies.base import Policy
from oclok.posterior.base import Posterior
from oclok.posterior.mixture import MixturePosterior
from oclok.validation import as_probability

#: A base arm whose std is above this share of the prior's is unlike any in the log.
STRANGE = 0.9
#: Prior std of f under a mixture, which learns the scale of f, as a share of the outcomes' std:
#: far from all data it predicts 0.6 or more.
MIXTURE_PRIOR = 0.6
#: Largest share of the policy's base arms unlike any in the log without a warning.
MOST_STRANGE = 0.1


def model_opinion(
    policy: Policy, log: Log, posterior: Posterior | None = None, *, level: float = 0.95
) -> Estimate:
    """Predict the reward per round of a policy that decides as it is and learns no more.

    The interval takes the errors at all base arms to be perfectly correlated. That is the widest
    they can make it together, so it is on the safe side if the model is right.

    Args:
        policy: makes a decision in every round of the log; it is copied, not changed.
        log: what the posterior learns and the policy is judged on.
        posterior: the model before it has learned the log; it is copied, not changed. Left out, a
            `MixturePosterior`, which learns kernel, noise and scale from the log.
        level: probability of the interval, in the model's opinion.

    Examples:
        >>> from oclok.offline import LoggedRound
        >>> from oclok.oracles import TopK
        >>> from oclok.policies import C2UCB
        >>> contexts = [[0.0], [1.0], [2.0]]
        >>> log = Log(LoggedRound(contexts, [t % 3], [t % 3], TopK(1)) for t in range(30))
        >>> policy = C2UCB()
        >>> policy.observe(*log.observations)
        >>> opinion = model_opinion(policy, log)
        >>> round(opinion.value, 1)
        2.0
    """
    reach = float(ndtri((1 + as_probability(level, "level")) / 2))
    posterior = MixturePosterior() if posterior is None else posterior
    model = posterior.copy()
    model.update(*log.observations)
    scale = MIXTURE_PRIOR * log.observations[1].std()
    values, strange = np.empty((len(log), 3)), []
    is_mixture = isinstance(posterior, MixturePosterior)
    for t, (current, chosen) in enumerate(zip(log, decide(policy, log), strict=True)):
        mean, std = model.predict(current.contexts)
        prior_std = scale if is_mixture else posterior.predict(current.contexts).std[chosen]
        strange.append(std[chosen] > STRANGE * prior_std)
        values[t] = [current.value(mean + by * std, chosen) for by in (0.0, -reach, reach)]
    value, lower, upper = values.mean(axis=0).tolist()
    share = float(np.concatenate(strange).mean())
    doubt = OverlapWarning(
        f"the model has seen next to nothing like {share:.0%} of the policy's base arms"
    )
    return Estimate(
        f"a model's opinion ({type(posterior).__name__})",
        value,
        lower,
        upper,
        level,
        len(log),
        0,
        math.nan,
        "the kernel and the noise of the model are right: this is no measurement",
        (doubt,) if share > MOST_STRANGE else (),
    )
