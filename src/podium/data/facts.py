"""What podium notices, as facts: each has a code and figures, and its sentence is made here and nowhere else.

A fact is its own sentence (it is a text), so that it can be shown, joined and written to JSON as it is.
"""

from __future__ import annotations

from typing import Any

MODEL_AIM = (
    "model of the reward is asked at the actions that policies choose: with it DRE, SNDR and DirectModel aim at the "
    "policies themselves, not at the smoothed ones that IPS and SNIPS judge"
)
UNSEEN = (
    "log has not seen all that {policy!r} does, or its densities are wrong: mean weight {mean_weight:.3g}, not 1. "
    "Remedy: compare policies that choose actions well within the range that was logged"
)
SENTENCES: dict[str, str] = {
    # why no claim may be made of a pair
    "logger seeks reward": "The logging policy seems to favor actions with high rewards (T_p = {t_p:.1f}), and DRE "
    "cannot correct for it: {lacks}. Remedy: {remedy}",
    "logger seeks reward, unknown": "The logging policy seems to favor actions with high rewards, and its "
    "probabilities are not known in full. Remedy: log propensity:<action> for every action, or name the behavior "
    'policy with --behavior, such as "shares:a=.4,b=.6"',
    "logger seeks reward, opposed": "The logging policy seems to favor actions with high rewards, and a doubly robust "
    "estimate points the other way. Remedy: log more rows",
    "logger seeks reward by estimate": "The logging policy seems to favor actions with high rewards by the estimated "
    "propensities (T_p = {t_p:.1f}), and {why}. Remedy: log the propensities, or name the behavior policy with "
    "--behavior",
    "uneven shares": "Good actions were logged more often than others, which misleads LDE, and DRE cannot step in: "
    "{lacks}. Remedy: {remedy}",
    "propensities not believed": "The propensities contradict how often actions were logged, so they support no claim: "
    "correct them, or name the behavior policy that was really used with --behavior",
    "few distinct rows": "Fewer than {least} distinct rows, and DRE cannot step in: {lacks}. Remedy: log more rows, or "
    "{remedy}",
    "LDE and DRE disagree": "LDE and DRE disagree, and DRE alone would claim too much: {lacks}. Remedy: {remedy}",
    "DRE claims too much": "DRE alone would claim too much: {why}",
    "unseen weight": "the log has not seen all that {policy!r} does, its propensities are wrong, or the policy was "
    "trained on these rows: mean weight {mean_weight:.3g}, not 1",
    "one heavy row": "a single row has {share:.0%} of the squared weights of {policy!r}",
    "unseen densities": f"The {UNSEEN}",
    "scores, not probabilities": "Scores that stand for probabilities rank policies; how sure the ranking is cannot be "
    "told from them",
    "no spread in rows": "The logged rows give the pair no spread to judge it by",
    "same policies": "Policies that do the same in every logged state cannot be told apart",
    "fewer than 3 rows": "Fewer than 3 rows tell no policy from another",
    "equal rewards": "Rewards that are all equal tell no policy from another",
    "few successes": "Too few rows whose reward is not the most common one tell these policies apart: about {rows}, "
    "and a claim needs {least}",
    "few units": "The rows come from too few units: {units}, and a claim needs {least}",
    "variances not fitted": "The variances of the prior could not be fitted to this log",
    "few effective rows": "Too few rows (or units) carry a policy's weight to show a spread: {effective:.2g} effective "
    "ones",
    "error of a model": "The error of {method} is that of the model's fit: it cannot show that the model is wrong",
    "uneven shrinking": "{method} takes {taken} of the two policies' weight: what it takes may be the difference",
    "single row": "A single row (or unit) shows no spread to judge a difference by",
    "equal scores": "Policies with equal scores cannot be told apart",
    "same difference in every row": "Every row gives the same difference, so there is no spread to judge it by",
    "open among many": "Sure enough alone, but not among {pairs} pairs judged together",
    "open": "The interval includes 0: the sign of the difference is open",
    "open at this look": "Sure enough for a single look at the log, but not for this one of the planned looks",
    "gate open": "A probability between {low:.3g} and {high:.5g} leaves it open at level {level:.5g}",
    "nothing known": "Nothing is known of this pair",
    "practically the same": "The whole interval lies within {difference:g}: practically the same",
    "no value for a percentage": "A margin in percent needs the value of {policy!r}, and DRE does not show it to be "
    "clearly above 0",
    "groups open": "The log cannot tell in {groups} of {of} groups: {named}",
    "groups fail": "It does not hold for {named}",
    "column follows action": "Column {column!r} differs between actions by more than the propensities explain, so it "
    "may have been recorded after the action; compare without it ({remedy})",
    "column repeats reward": "Column {column!r} alone determines the reward (R2 = {r2:.3f}) whatever the action, so it "
    "may have been recorded after the outcome; compare without it ({remedy})",
    "verdict contradicts DRE": "The {procedure} and DRE differ by more than chance explains, as they do where state "
    "columns were recorded after the action or propensities are wrong; keep only columns known before the action "
    "(--state)",
    "verdict contradicts DRE, column": "The {procedure} and DRE differ by more than chance explains; column "
    "{column!r} would explain it if it was recorded after the action; compare without it ({remedy})",
    # of groups
    "few rows in group": "The group has {rows}, and a claim needs {least}",
    "group in blocks": "A log of this size is judged in blocks of rows, and some of them have next to no row of this "
    "group",
    "open among groups": "Sure enough alone, but not among {groups} groups judged together",
    "group follows action": "Column {column!r} is related to the logged action beyond the propensities, so it may have "
    "been recorded after the action: groups by it show the effect of actions, not for whom a policy is better",
    "group repeats reward": "Column {column!r} alone determines the reward (R2 = {r2:.3f}), so it may have been "
    "recorded after the outcome: groups by it cannot show for whom a policy is better",
    "rare groups": "Groups by {column}: {values:,} values with fewer than {least} rows each are put together",
    "groups": "Groups by {columns} share what they have in common: each is shrunk towards the whole as far as the log "
    "shows no difference between groups. A claim also allows for the number of groups",
    "groups of sample": "The groups by {column} come from the sample: values that it lacks are in no group",
    "harm in group": "{a} is not better than {b} for everyone: it is worse where {by} is {value} "
    "({difference}, P(worse) = {p_worse:.3f}).",
    # what a judgement rests on
    "no propensities": "Without propensities it is assumed that logging did not seek reward",
    "fixed shares": "The behavior policy is known for all actions: it takes each with a fixed probability ({shares})",
    "propensities at logged actions": "Only the propensities of logged actions are known; they serve to watch for "
    "loggers that seek reward",
    "policies at logged actions": "Some policies are known only at the logged actions; what they do elsewhere is "
    "bounded",
    "errors from weights": "DRE's errors come from the log alone: from how near to 1 the policies' mean weights are",
    "estimate used": "The estimated propensities are taken for the logger's habits, which assumes that {assumes}",
    "estimate not used": "The verdicts do without the estimated propensities, which serve IPS and DRE and can only "
    "silence a pair",
    "estimate taken as known": "The errors take the estimated propensities as if they were known",
    "net worth": "Policies are ranked by net worth = {formula}, added up row by row; each outcome by itself follows",
    "known costs": "Known costs are {verb} every value exactly: {costs}",
    "known costs by row": "Known costs are {verb} every value exactly, row by row: {columns}",
    "costs alone": "every row has the same reward, so known costs alone tell policies apart. If rewards can differ, "
    "log more rows.",
    "action features": "Action features: {columns}. Actions that are alike in them inform each other",
    "action features explain nothing": "Action features: {columns}. They explain nothing that this log shows, so the "
    "verdicts do without them",
    "action features ignored": "Action features that are constant, or texts that differ for every action, are not used"
    ": {columns}",
    "action features unused": "The action features ({columns}) are not used: {why}",
    "procedure": "Judged by the {procedure} procedure: {why}",
    "look": "Look {number} of {of}: claims and gates need level {needed:.4g} now, so that all looks together keep "
    "level {level:g}",
    "sample judges": "Estimates come from all rows; verdicts and what drives them from a random sample of {rows:,} of "
    "the {of:,} rows",
    "all rows judge": "Estimates and verdicts come from all rows; what drives them from a random sample of {rows:,} of "
    "the {of:,} rows",
    "DRE judges": "{pairs:,} of {of:,} pairs are judged by doubly robust differences (DRE) on all rows, which are more "
    "precise here than the usual procedure, or contradict it",
    "best unknown": "the pairs that podium can judge do not connect all policies",
    # what a log is too thin for
    "policy never logged": "Policy {policy!r} never plays an action that was logged; what is said of it rests on other "
    "actions",
    "actions never logged": "Of {actions:,} actions {unseen:,} were never logged; their rewards are guessed from "
    "others",
    "few states": "The log has {states} and says little of any other",
    "one action per state": "In every state only one action was logged, so actions are compared across states",
    # rules worth trying
    "rule supported": "A rule worth trying: {sentence}. On {rows:,} rows that it never saw it is better than {others}: "
    "{first} by {difference} ({interval})",
    "rule not supported": "None that this log can support. The best rule found is: {sentence}. On {rows:,} rows that "
    "it never saw podium cannot show that it is better than {others}: the difference from {first} is {difference} "
    "({interval})",
    "no rule": "None that this log can support: on {rows:,} rows, cross-validated, no rule of depth {depth} or less "
    "does better than always choosing {action}",
    "no rule possible": "None that this log can support: no rule of depth {depth} or less chooses only actions that "
    "were possible in every row",
    "too few rows for a rule": "None that this log can support: it has {have}, and a rule needs at least {least}, half "
    "of them to find it and half to judge it",
    "rule searched": "Found on {fitted:,} rows, drawn with seed {seed}, by a tree of depth {depth} or less on doubly "
    "robust scores; judged on the other {judged:,}, which did not influence it",
    "rule without propensities": "The log has no propensities: the search estimates them, and assumes that everything "
    "that influenced both the choice of actions and the reward is among the state columns",
    "rule actions left out": "Actions that the rule could not choose, since fewer than {least} of the searched rows "
    "hold them or {most} others are more common: {actions}",
    "rule columns left out": "Columns that the rule could not ask for (neither numbers nor a few texts): {columns}",
    # what something that is not in the log could do to a claim
    "hidden causes, falls": "The claim that {winner} is better than {loser} would fall if something that is not in the "
    "log made an action more than {gamma:.3g} times as likely (in odds) as it looks",
    "hidden causes, beyond": "The claim that {winner} is better than {loser} would stand even if something that is not "
    "in the log made an action {gamma:g} times as likely (in odds) as it looks",
    "hidden causes, unconfirmed": "The doubly robust estimate alone does not confirm the claim that {winner} is better "
    "than {loser} (its interval is {interval}), so the claim withstands no hidden influence",
    "hidden causes, opposed": "The doubly robust estimate contradicts the claim that {winner} is better than {loser} "
    "(its interval is {interval}), so the claim withstands no hidden influence",
    "hidden causes, logged": "Not needed: the propensities were logged, and they say how the actions were chosen",
    "hidden causes, scores": "Not available where policies are scores or densities, which have no odds",
    "hidden causes, too large": "Not worked out for so many rows and actions",
    # warnings
    "verdict against ranking": "{a} ranks above {b}, but the verdict is that it is worse (P(better) = {p_better:.3f}).",
    "column follows action, warning": "column {column!r} is related to the logged action beyond the propensities "
    "(p = {p_value:.1g}): it was recorded after the action, or the propensities are wrong. Conditioning on such a "
    "column biases every comparison, so podium gives no verdicts. Compare without it ({remedy}).",
    "column repeats reward, warning": "column {column!r} alone determines the reward (R2 = {r2:.3f}) whatever the "
    "action: it seems to have been recorded after the outcome. Conditioning on such a column hides every difference "
    "between policies, so podium gives no verdicts. Compare without it ({remedy}).",
    "verdict contradicts DRE, warning": "the {procedure} and DRE without states differ by more than chance explains on "
    "{pairs:,} of {of:,} pairs, which get no verdict. State columns recorded after the action, or wrong propensities, "
    "would explain it. Keep only columns known before the action (--state).",
    "verdict contradicts DRE, column, warning": "the {procedure} and DRE without states differ by more than chance "
    "explains on {pairs:,} of {of:,} pairs, which get no verdict. Column {column!r} would explain it if it was "
    "recorded after the action, and so would wrong propensities. Compare without it ({remedy}).",
    "state is an ID": "the state column {column!r} looks like an ID ({values:,} different values in {rows:,} rows): a "
    "state that never comes back teaches nothing about other rows. Compare without it ({remedy}).",
    "state is a time": "the state column {column!r} looks like a date or time, which never comes back. Give the order "
    "of the rows by it (--time {option}), and compare without it ({remedy}).",
    "state is a unit": "the state column {column!r} seems to identify people or devices ({values:,} values, each in "
    "{each:.2g} rows on average), whose rows depend on each other. Name it as the unit ({remedy}).",
    "drift, states": "the states changed over time ({what}: {early} in the first half of the rows, {late} in the "
    "second; chance: {p_value:.1g}). Values are averages over states of both.",
    "drift, states alone": "the states changed over time ({what}: {early} in the first half of the rows, {late} in the "
    "second; chance: {p_value:.1g}), and podium finds no other change: rewards and differences among similar states "
    "stayed alike. Values are averages over states of both halves.",
    "drift, actions": "the logged actions changed over time ({what}: {early} of the first half of the rows, {late} of "
    "the second; chance: {p_value:.1g}). Verdicts that need "
    "propensities do not know of it.",
    "drift, propensities": "the logged actions departed from their propensities differently over time ({what}: share "
    "less propensity {early} in the first half of the rows, {late} in the second; chance: {p_value:.1g}), so the "
    "propensities are wrong in some rows. Check that they hold for both halves.",
    "drift, rewards": "rewards changed over time among similar states and actions ({what}: {early} in the first half "
    "of the rows, {late} in the second; chance: {p_value:.1g}). Compare recent rows alone with --since TIME.",
    "drift, pairs": "the difference of policies changed over time ({what}: {early} in the first half of the rows, "
    "{late} in the second; chance: {p_value:.1g}), so the answer may not hold from now on. Compare recent rows alone "
    "with --since TIME.",
    "copied rows": "{copies:,} of the {rows:,} rows repeat another one in state, action and reward. If the log holds "
    "rows twice, remove the copies: as independent rows they make every answer look surer than it is.",
    "similar actions": "the logged actions {one} and {other} differ only by case or spaces; if they are the same, give "
    "them one name.",
    "mean weight": "the importance weights of policy {policy!r} average {mean:.3g}, not 1 ({errors:.1f} standard "
    "errors away): {causes}. If the policy was trained on this log, judge how it learns: podium.Learned(estimator).",
    "long text": "column {column!r} holds long texts (median: {length:,} characters), so it is not part of the state. "
    "To include it: {options}",
    "no error": "{method} of {policy!r}{more} has no error: fewer than two effective rows (or units) carry the weight, "
    "and show no spread.",
    "shrinks weights": "{method} shrinks large weights, of each policy by another share, so that it can turn a ranking "
    "round; hold it against DRE.",
    "shrinks unevenly": "{method} shrinks large weights, of each policy by another share, so that it can turn a "
    "ranking "
    "round; hold it against DRE. Here it takes {most} of the weight of {policy!r} and {least} of that of {other!r}.",
    "shrinks evenly": "{method} shrinks large weights, which can turn a ranking round; hold it against DRE. Here it "
    "takes {share} of the weight of every policy.",
    "ranks by a model": "{method} ranks by the reward model alone: where the model errs, no logged reward corrects it.",
    "shrunk weights": "Methods with shrunk weights shrink each policy by another share, so that they can turn a "
    "ranking "
    "round; hold them against DRE.",
    # episodes
    "actors unknown": "The policies that acted are not all known ({policies}), so there are no propensities",
    "density products": "Probabilities of sequences are products of the policies' densities",
    "sequence proxies": "Probabilities of sequences are proxies (how near a policy's actions are to the logged ones): "
    "read the order of scores and differences, not their size",
    "densities not used": "The densities that {policies} can give are not used: not every policy has them",
    "probabilities rescaled": "All probabilities were divided by the largest, e^{log:.4g}: a common factor changes no "
    "order",
    "behavior probability 0": "IPS and DRE are left out: the behaviour policy's own probability is 0 in episode "
    "{episode} ({episodes})",
    "ratio too large": "IPS and DRE are left out: a ratio of probabilities is e^{log:.4g}",
    "tiny propensities": "Propensities below 1e-30 are used only inside the ratios of IPS and DRE",
    "discounted": "The reward of step t = 0, 1, ... counts {gamma:g}^t times",
    "policy impossible": "Policy {policy!r} has probability 0 in every episode: nothing that was logged speaks of it",
    "episodes cut short": "{episodes} stopped before step {step} without having ended: returns are not whole",
    # continuous actions
    "smoothed": "Policies are smoothed by the {kernel} kernel with bandwidth {bandwidth}: what is judged are those",
    "densities known": "The densities of the logged actions are known, and weights are ratios to them",
    "densities not needed": "The gated procedure does without the densities, and assumes that logging did not seek "
    "reward",
    "model at chosen actions": f"The {MODEL_AIM}",
    "model at chosen actions, warning": f"the {MODEL_AIM}.",
    "unseen densities, warning": f"the {UNSEEN}.",
    # plans
    "logged as before": "The rows needed presume that more rows are logged as these were.",
    "pairs without plan": "Some pairs have no plan. {why}.",
    "plan too large": "What to log more of is not worked out for so many rows and actions.",
    "plan needs policies": "What to log more of cannot be said: some policies are known only at the logged actions.",
    # of how a file was read
    "encoding": "{file} is {encoding}, not UTF-8; it was read as such",
    "packed": "{file} is {packing} inside; it was unpacked",
    "file inside": "Read {member!r} inside {file}",
    "another format": "{file} is {format} inside; it was read as such",
    "sheet": "Read the sheet {sheet!r}; --sheet names another of {others}",
    "title": "Skipped {lines} above the header, which is on line {header}",
    "nameless columns": "Left out {columns} without a name",
    "total row": "Left out the last row (line {line}), which holds totals",
    "nameless index": "Left out the first column, which has no name and numbers the rows",
    "invisible in names": "Removed characters that do not show from the names of these columns: {columns}",
    "labels merged": "Column {column!r}: labels that look the same were merged into {labels}, by removing spaces and "
    "characters that do not show ({rows} changed)",
    "column without a name": "Column {place} has no name; it is called {column!r}",
    "column twice": "Two columns are called {column!r} and are equal; one of them was kept",
    "name twice": "Two columns are called {column!r} and differ; the second is called {called!r}",
    "further headers": "Left out {rows} of labels below the header ({lines})",
    "role by its name": "Column {column!r} is the {role}",
    "foot": "Left out {rows} below the table, from line {line} on: {note}",
    "numbers as written": "Column {column!r}: read {words}, such as {example} as {number:.10g}",
    "dates as written": "Column {column!r}: read dates as {order}, such as {example} as {date}",
    "outcome in words": "Column {column!r}: {success} counts as 1, {others} as 0",
    "missing number": "Column {column!r}: {gaps} taken for missing; the state has the median {fill:.10g} there, and "
    "'{column} missing' marks these rows",
    "missing text": "Column {column!r}: {gaps} taken for missing, a value of its own ('{level}')",
    "empty column": "Left out column {column!r}, which is empty",
    "empty rows": "Left out {rows} without any value",
    "since": "Used only the {rows} of {of:,} from {time} on (column {column!r})",
    "dropped rows": "Left out {rows} of {of:,} (--drop-missing): {why}",
    "not taken as state": "Not taken as state: {columns}; --state COL takes a column as state",
    "recorded after": "Not taken as state: {columns}, which may have been recorded after the action; --state COL takes "
    "a column as state",
    "harmful outcome": "Column {column!r}: more of it may be worse; if so, add --lower-is-better",
    "codes of yes and no": "Column {column!r} holds only 1 and 2, which may be codes of yes and no; --success 1 counts "
    "1 as 1 and 2 as 0",
    "sentinel": "Column {column!r} holds {value:g} in {rows}, far from all other values; if that stands for a missing "
    "value, empty these cells",
    "odd states alone": "The state is only {columns}, which may say little; --state COL takes other columns as state",
    "no state": "No column is state, so all rows count as one state",
    # of policies
    "new actions": "policy {policy!r} can play actions that the log's action space lacks: {actions}.{meant}",
    "labels matched": "policy {policy!r} names its actions by {kind} ({theirs}); podium takes them for the log's "
    "{ours}.",
    "SPEC and column": "policy {policy!r}: {spec!r} is read as a SPEC, not as the log's column of that name; write "
    "column:{spec} for the column.",
    "model of another version": "policy {policy!r}: {file} was made with scikit-learn {made}, and {installed} is "
    "installed; its probabilities may differ from those that it was made to give.",
    "conflicting rows": "policy {policy!r} has different probabilities in rows of one (state, action) ({rows}): "
    "it depends on something that the state columns leave out.",
    "renormalized": "policy {policy!r} plays actions that were not eligible in {rows}; {share:.1%} of its probability "
    "was moved to the eligible actions.",
    "actions named by slot": "the lists of actions change from row to row and have no ids, so an action is only its "
    "place in the list; give every action a tag or an id if a place can hold different items.",
    "recipes": "{policies} learned from this log: on each of {folds} folds podium judges what was learned from the "
    "other folds, with errors widened {factor:.3g} times since these share rows. The answer is about the recipe, not "
    "about one fixed model",
    # of propensities that were logged or declared
    "false propensities": "the propensities cannot be right: on average they give action {action} a probability of "
    "{expected:.3g}, and {logged:.3g} of the rows hold it (chance: {chance:.1g}). Verdicts that need propensities are "
    "withheld. Correct the propensities, or name the behavior policy that was really used, such as "
    '--behavior "shares:a=.4,b=.6".',
    "propensities too small": "the propensities of action {action} cannot be right: counted 1/p times each, its rows "
    "make {total:.0%} of the log, and 100% is the most (chance: {chance:.1g}). Verdicts that need propensities are "
    "withheld. Correct the propensities, or name the behavior policy that was really used with --behavior.",
    # of estimated propensities
    "doubtful propensities": "estimated propensities: {doubt}. {advice}.",
    "one action": "only one action was logged, so nothing shows how others would have been chosen",
    "few rows": "{rows} rows are too few to learn how actions were chosen",
    "calibration": "the probabilities are not those with which actions occur ({misplaced:.0%} of rows misplaced)",
    "balance": "the estimate misses how {feature} goes with action {action} (z = {z:.1f})",
    "rare actions": "fewer than {rows} rows show each of the actions {actions}",
    "tiny": "{share:.0%} of the rows have a probability below {below:g}",
}


class Fact(str):
    """A warning, reason, note or alarm.

    >>> fact = Fact("few rows", rows=12)
    >>> fact.code, str(fact)
    ('few rows', '12 rows are too few to learn how actions were chosen')
    """

    code: str
    fields: dict[str, Any]

    def __new__(cls, code: str, **fields: Any) -> Fact:
        fact = super().__new__(cls, SENTENCES[code].format(**fields))
        fact.code, fact.fields = code, fields
        return fact

    @classmethod
    def said(cls, code: str, sentence: str, fields: dict[str, Any]) -> Fact:
        """A fact in the words in which it was once said, which may not be those of `SENTENCES`."""
        fact = super().__new__(cls, sentence)
        fact.code, fact.fields = code, fields
        return fact

    def __reduce__(self) -> tuple[Any, ...]:
        return Fact.said, (self.code, str(self), self.fields)


def fact_dict(text: str) -> dict[str, Any]:
    """The content of JSON: {"code", "text"} and the figures; a text that is no fact has no code."""
    if not isinstance(text, Fact):
        return {"code": None, "text": text}
    return {"code": text.code, "text": str(text), **text.fields}
