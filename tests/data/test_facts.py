"""Facts: every sentence as it is read, whole; how facts travel, and what JSON holds of them."""

from __future__ import annotations

import json
import pickle
import string
from typing import Any

import numpy as np
import pytest
from samples import sample

import podium
from podium.data.facts import SENTENCES, Fact, fact_dict

SAID: dict[str, tuple[dict[str, Any], str]] = {
    "logger seeks reward": (
        {"t_p": 4.21, "lacks": "the log has no propensities", "remedy": "log them"},
        "The logging policy seems to favor actions with high rewards (T_p = 4.2), and DRE cannot correct for it: the "
        "log has no propensities. Remedy: log them",
    ),
    "logger seeks reward, unknown": (
        {},
        "The logging policy seems to favor actions with high rewards, and its probabilities are not known in full. "
        "Remedy: log propensity:<action> for every action, or name the behavior policy with --behavior, such as "
        '"shares:a=.4,b=.6"',
    ),
    "logger seeks reward, opposed": (
        {},
        "The logging policy seems to favor actions with high rewards, and a doubly robust estimate points the other "
        "way. Remedy: log more rows",
    ),
    "logger seeks reward by estimate": (
        {"t_p": -3.5, "why": "they are no proof"},
        "The logging policy seems to favor actions with high rewards by the estimated propensities (T_p = -3.5), and "
        "they are no proof. Remedy: log the propensities, or name the behavior policy with --behavior",
    ),
    "uneven shares": (
        {"lacks": "some policies are known only at the logged actions", "remedy": "give every policy in full"},
        "Good actions were logged more often than others, which misleads LDE, and DRE cannot step in: some policies "
        "are known only at the logged actions. Remedy: give every policy in full",
    ),
    "propensities not believed": (
        {},
        "The propensities contradict how often actions were logged, so they support no claim: correct them, or name "
        "the behavior policy that was really used with --behavior",
    ),
    "few distinct rows": (
        {"least": 50, "lacks": "the log has no propensities", "remedy": "log them"},
        "Fewer than 50 distinct rows, and DRE cannot step in: the log has no propensities. Remedy: log more rows, or "
        "log them",
    ),
    "LDE and DRE disagree": (
        {"lacks": "the log has no propensities", "remedy": "log them"},
        "LDE and DRE disagree, and DRE alone would claim too much: the log has no propensities. Remedy: log them",
    ),
    "DRE claims too much": (
        {"why": "a single row has 11% of the squared weights of 'a'"},
        "DRE alone would claim too much: a single row has 11% of the squared weights of 'a'",
    ),
    "unseen weight": (
        {"policy": "new", "mean_weight": 0.81234},
        "the log has not seen all that 'new' does, its propensities are wrong, or the policy was trained on these "
        "rows: mean weight 0.812, not 1",
    ),
    "one heavy row": ({"policy": "new", "share": 0.114}, "a single row has 11% of the squared weights of 'new'"),
    "unseen densities": (
        {"policy": "high", "mean_weight": 0.0},
        "The log has not seen all that 'high' does, or its densities are wrong: mean weight 0, not 1. Remedy: compare "
        "policies that choose actions well within the range that was logged",
    ),
    "scores, not probabilities": (
        {},
        "Scores that stand for probabilities rank policies; how sure the ranking is cannot be told from them",
    ),
    "no spread in rows": ({}, "The logged rows give the pair no spread to judge it by"),
    "same policies": ({}, "Policies that do the same in every logged state cannot be told apart"),
    "fewer than 3 rows": ({}, "Fewer than 3 rows tell no policy from another"),
    "equal rewards": ({}, "Rewards that are all equal tell no policy from another"),
    "few successes": (
        {"rows": 2, "least": 5},
        "Too few rows whose reward is not the most common one tell these policies apart: about 2, and a claim needs 5",
    ),
    "few units": ({"units": 1, "least": 5}, "The rows come from too few units: 1, and a claim needs 5"),
    "variances not fitted": ({}, "The variances of the prior could not be fitted to this log"),
    "few effective rows": (
        {"effective": 1.234},
        "Too few rows (or units) carry a policy's weight to show a spread: 1.2 effective ones",
    ),
    "error of a model": (
        {"method": "DirectModel"},
        "The error of DirectModel is that of the model's fit: it cannot show that the model is wrong",
    ),
    "uneven shrinking": (
        {"method": "cIPS:10", "taken": "50% and 0%"},
        "cIPS:10 takes 50% and 0% of the two policies' weight: what it takes may be the difference",
    ),
    "single row": ({}, "A single row (or unit) shows no spread to judge a difference by"),
    "equal scores": ({}, "Policies with equal scores cannot be told apart"),
    "same difference in every row": (
        {},
        "Every row gives the same difference, so there is no spread to judge it by",
    ),
    "open among many": ({"pairs": 66}, "Sure enough alone, but not among 66 pairs judged together"),
    "open": ({}, "The interval includes 0: the sign of the difference is open"),
    "open at this look": (
        {},
        "Sure enough for a single look at the log, but not for this one of the planned looks",
    ),
    "look": (
        {"number": 3, "of": 16, "needed": 0.99894, "level": 0.95},
        "Look 3 of 16: claims and gates need level 0.9989 now, so that all looks together keep level 0.95",
    ),
    "gate open": (
        {"low": 0.025, "high": 0.975, "level": 0.95},
        "A probability between 0.025 and 0.975 leaves it open at level 0.95",
    ),
    "nothing known": ({}, "Nothing is known of this pair"),
    "practically the same": ({"difference": 0.05}, "The whole interval lies within 0.05: practically the same"),
    "no value for a percentage": (
        {"policy": "current"},
        "A margin in percent needs the value of 'current', and DRE does not show it to be clearly above 0",
    ),
    "groups open": (
        {"groups": 2, "of": 3, "named": "'phone', 'tablet'"},
        "The log cannot tell in 2 of 3 groups: 'phone', 'tablet'",
    ),
    "groups fail": ({"named": "'phone'"}, "It does not hold for 'phone'"),
    "net worth": (
        {"formula": "reward - 0.2 x cost"},
        "Policies are ranked by net worth = reward - 0.2 x cost, added up row by row; each outcome by itself follows",
    ),
    "column follows action": (
        {"column": "status", "remedy": "--state age"},
        "Column 'status' differs between actions by more than the propensities explain, so it may have been recorded "
        "after the action; compare without it (--state age)",
    ),
    "column repeats reward": (
        {"column": "status", "r2": 0.9912, "remedy": "--state age"},
        "Column 'status' alone determines the reward (R2 = 0.991) whatever the action, so it may have been recorded "
        "after the outcome; compare without it (--state age)",
    ),
    "verdict contradicts DRE": (
        {"procedure": "posterior"},
        "The posterior and DRE differ by more than chance explains, as they do where state columns were recorded after "
        "the action or propensities are wrong; keep only columns known before the action (--state)",
    ),
    "verdict contradicts DRE, column": (
        {"procedure": "posterior", "column": "status", "remedy": "--state age"},
        "The posterior and DRE differ by more than chance explains; column 'status' would explain it if it was "
        "recorded after the action; compare without it (--state age)",
    ),
    "few rows in group": ({"rows": "12 rows", "least": 20}, "The group has 12 rows, and a claim needs 20"),
    "group in blocks": (
        {},
        "A log of this size is judged in blocks of rows, and some of them have next to no row of this group",
    ),
    "open among groups": ({"groups": 4}, "Sure enough alone, but not among 4 groups judged together"),
    "group follows action": (
        {"column": "status"},
        "Column 'status' is related to the logged action beyond the propensities, so it may have been recorded after "
        "the action: groups by it show the effect of actions, not for whom a policy is better",
    ),
    "group repeats reward": (
        {"column": "status", "r2": 0.991},
        "Column 'status' alone determines the reward (R2 = 0.991), so it may have been recorded after the outcome: "
        "groups by it cannot show for whom a policy is better",
    ),
    "rare groups": (
        {"column": "city", "values": 1200, "least": 20},
        "Groups by city: 1,200 values with fewer than 20 rows each are put together",
    ),
    "groups": (
        {"columns": "device, age"},
        "Groups by device, age share what they have in common: each is shrunk towards the whole as far as the log "
        "shows no difference between groups. A claim also allows for the number of groups",
    ),
    "groups of sample": (
        {"column": "city"},
        "The groups by city come from the sample: values that it lacks are in no group",
    ),
    "harm in group": (
        {"a": "new", "b": "old", "by": "device", "value": "tv", "difference": "-0.3", "p_worse": 0.9912},
        "new is not better than old for everyone: it is worse where device is tv (-0.3, P(worse) = 0.991).",
    ),
    "no propensities": ({}, "Without propensities it is assumed that logging did not seek reward"),
    "fixed shares": (
        {"shares": "'a' 0.4, 'b' 0.6"},
        "The behavior policy is known for all actions: it takes each with a fixed probability ('a' 0.4, 'b' 0.6)",
    ),
    "false propensities": (
        {"action": "'a'", "expected": 0.25, "logged": 0.4, "chance": 2e-9},
        "the propensities cannot be right: on average they give action 'a' a probability of 0.25, and 0.4 of the rows "
        "hold it (chance: 2e-09). Verdicts that need propensities are withheld. Correct the propensities, or name the "
        'behavior policy that was really used, such as --behavior "shares:a=.4,b=.6".',
    ),
    "propensities too small": (
        {"action": "'a'", "total": 1.612, "chance": 2e-9},
        "the propensities of action 'a' cannot be right: counted 1/p times each, its rows make 161% of the log, and "
        "100% is the most (chance: 2e-09). Verdicts that need propensities are withheld. Correct the propensities, or "
        "name the behavior policy that was really used with --behavior.",
    ),
    "propensities at logged actions": (
        {},
        "Only the propensities of logged actions are known; they serve to watch for loggers that seek reward",
    ),
    "policies at logged actions": (
        {},
        "Some policies are known only at the logged actions; what they do elsewhere is bounded",
    ),
    "errors from weights": (
        {},
        "DRE's errors come from the log alone: from how near to 1 the policies' mean weights are",
    ),
    "estimate used": (
        {"assumes": "nothing hidden drives both"},
        "The estimated propensities are taken for the logger's habits, which assumes that nothing hidden drives both",
    ),
    "estimate not used": (
        {},
        "The verdicts do without the estimated propensities, which serve IPS and DRE and can only silence a pair",
    ),
    "estimate taken as known": ({}, "The errors take the estimated propensities as if they were known"),
    "procedure": (
        {"procedure": "gated", "why": "the posterior needs probabilities"},
        "Judged by the gated procedure: the posterior needs probabilities",
    ),
    "known costs": (
        {"verb": "subtracted from", "costs": "'call' 2.5"},
        "Known costs are subtracted from every value exactly: 'call' 2.5",
    ),
    "known costs by row": (
        {"verb": "added to", "columns": "price"},
        "Known costs are added to every value exactly, row by row: price",
    ),
    "costs alone": (
        {},
        "every row has the same reward, so known costs alone tell policies apart. If rewards can differ, log "
        "more rows.",
    ),
    "action features": (
        {"columns": "price, brand"},
        "Action features: price, brand. Actions that are alike in them inform each other",
    ),
    "action features explain nothing": (
        {"columns": "price"},
        "Action features: price. They explain nothing that this log shows, so the verdicts do without them",
    ),
    "action features ignored": (
        {"columns": "title"},
        "Action features that are constant, or texts that differ for every action, are not used: title",
    ),
    "action features unused": (
        {"columns": "price", "why": "the gated procedure has no model of the actions"},
        "The action features (price) are not used: the gated procedure has no model of the actions",
    ),
    "sample judges": (
        {"rows": 20_000, "of": 1_000_000},
        "Estimates come from all rows; verdicts and what drives them from a random sample of 20,000 of the "
        "1,000,000 rows",
    ),
    "all rows judge": (
        {"rows": 20_000, "of": 1_000_000},
        "Estimates and verdicts come from all rows; what drives them from a random sample of 20,000 of the 1,000,000 "
        "rows",
    ),
    "DRE judges": (
        {"pairs": 3, "of": 10},
        "3 of 10 pairs are judged by doubly robust differences (DRE) on all rows, which are more precise here than the "
        "usual procedure, or contradict it",
    ),
    "best unknown": ({}, "the pairs that podium can judge do not connect all policies"),
    "policy never logged": (
        {"policy": "new"},
        "Policy 'new' never plays an action that was logged; what is said of it rests on other actions",
    ),
    "actions never logged": (
        {"actions": 1_200, "unseen": 1_000},
        "Of 1,200 actions 1,000 were never logged; their rewards are guessed from others",
    ),
    "few states": ({"states": "3 states"}, "The log has 3 states and says little of any other"),
    "one action per state": (
        {},
        "In every state only one action was logged, so actions are compared across states",
    ),
    "hidden causes, falls": (
        {"winner": "new", "loser": "current", "gamma": 1.8234},
        "The claim that new is better than current would fall if something that is not in the log made an action more "
        "than 1.82 times as likely (in odds) as it looks",
    ),
    "hidden causes, beyond": (
        {"winner": "new", "loser": "current", "gamma": 10.0},
        "The claim that new is better than current would stand even if something that is not in the log made an action "
        "10 times as likely (in odds) as it looks",
    ),
    "hidden causes, unconfirmed": (
        {"winner": "new", "loser": "current", "interval": "[-0.100, 0.300]"},
        "The doubly robust estimate alone does not confirm the claim that new is better than current (its interval is "
        "[-0.100, 0.300]), so the claim withstands no hidden influence",
    ),
    "hidden causes, opposed": (
        {"winner": "new", "loser": "current", "interval": "[-0.300, -0.100]"},
        "The doubly robust estimate contradicts the claim that new is better than current (its interval is "
        "[-0.300, -0.100]), so the claim withstands no hidden influence",
    ),
    "hidden causes, logged": (
        {},
        "Not needed: the propensities were logged, and they say how the actions were chosen",
    ),
    "hidden causes, scores": (
        {},
        "Not available where policies are scores or densities, which have no odds",
    ),
    "hidden causes, too large": ({}, "Not worked out for so many rows and actions"),
    "verdict against ranking": (
        {"a": "new", "b": "old", "p_better": 0.0123},
        "new ranks above old, but the verdict is that it is worse (P(better) = 0.012).",
    ),
    "column follows action, warning": (
        {"column": "status", "p_value": 1.23e-9, "remedy": "--state age"},
        "column 'status' is related to the logged action beyond the propensities (p = 1e-09): it was recorded after "
        "the action, or the propensities are wrong. Conditioning on such a column biases every comparison, so podium "
        "gives no verdicts. Compare without it (--state age).",
    ),
    "column repeats reward, warning": (
        {"column": "status", "r2": 1.0, "remedy": "--state age"},
        "column 'status' alone determines the reward (R2 = 1.000) whatever the action: it seems to have been recorded "
        "after the outcome. Conditioning on such a column hides every difference between policies, so podium gives no "
        "verdicts. Compare without it (--state age).",
    ),
    "verdict contradicts DRE, warning": (
        {"procedure": "posterior", "pairs": 1, "of": 3},
        "the posterior and DRE without states differ by more than chance explains on 1 of 3 pairs, which get no "
        "verdict. State columns recorded after the action, or wrong propensities, would explain it. Keep only columns "
        "known before the action (--state).",
    ),
    "verdict contradicts DRE, column, warning": (
        {"procedure": "posterior", "pairs": 1, "of": 3, "column": "status", "remedy": "--state age"},
        "the posterior and DRE without states differ by more than chance explains on 1 of 3 pairs, which get no "
        "verdict. Column 'status' would explain it if it was recorded after the action, and so would wrong "
        "propensities. Compare without it (--state age).",
    ),
    "state is an ID": (
        {"column": "id", "values": 1999, "rows": 2000, "remedy": "--state age"},
        "the state column 'id' looks like an ID (1,999 different values in 2,000 rows): a state that never comes back "
        "teaches nothing about other rows. Compare without it (--state age).",
    ),
    "copied rows": (
        {"copies": 1200, "rows": 2400},
        "1,200 of the 2,400 rows repeat another one in state, action and reward. If the log holds rows twice, remove "
        "the copies: as independent rows they make every answer look surer than it is.",
    ),
    "state is a time": (
        {"column": "seen at", "option": "'seen at'", "remedy": "--state age"},
        "the state column 'seen at' looks like a date or time, which never comes back. Give the order of the rows by "
        "it (--time 'seen at'), and compare without it (--state age).",
    ),
    "state is a unit": (
        {"column": "user", "values": 1200, "each": 4.26, "remedy": "--unit user --state age"},
        "the state column 'user' seems to identify people or devices (1,200 values, each in 4.3 rows on average), "
        "whose rows depend on each other. Name it as the unit (--unit user --state age).",
    ),
    "similar actions": (
        {"one": "'b'", "other": "'B '"},
        "the logged actions 'b' and 'B ' differ only by case or spaces; if they are the same, give them one name.",
    ),
    "mean weight": (
        {"policy": "new", "mean": 1.8234, "errors": 7.25, "causes": "it was trained on rows of this log"},
        "the importance weights of policy 'new' average 1.82, not 1 (7.2 standard errors away): it was trained on rows "
        "of this log. If the policy was trained on this log, judge how it learns: podium.Learned(estimator).",
    ),
    "long text": (
        {"column": "prompt", "length": 1234, "options": "--state age --state prompt"},
        "column 'prompt' holds long texts (median: 1,234 characters), so it is not part of the state. To include it: "
        "--state age --state prompt",
    ),
    "no error": (
        {"method": "SNIPS", "policy": "new", "more": " and 2 more"},
        "SNIPS of 'new' and 2 more has no error: fewer than two effective rows (or units) carry the weight, and show "
        "no spread.",
    ),
    "shrinks weights": (
        {"method": "cIPS:10"},
        "cIPS:10 shrinks large weights, of each policy by another share, so that it can turn a ranking round; hold it "
        "against DRE.",
    ),
    "shrinks unevenly": (
        {"method": "cIPS:10", "most": "50%", "policy": "new", "least": "0%", "other": "old"},
        "cIPS:10 shrinks large weights, of each policy by another share, so that it can turn a ranking round; hold it "
        "against DRE. Here it takes 50% of the weight of 'new' and 0% of that of 'old'.",
    ),
    "shrinks evenly": (
        {"method": "cIPS:10", "share": "50%"},
        "cIPS:10 shrinks large weights, which can turn a ranking round; hold it against DRE. Here it takes 50% of the "
        "weight of every policy.",
    ),
    "ranks by a model": (
        {"method": "DirectModel"},
        "DirectModel ranks by the reward model alone: where the model errs, no logged reward corrects it.",
    ),
    "shrunk weights": (
        {},
        "Methods with shrunk weights shrink each policy by another share, so that they can turn a ranking round; hold "
        "them against DRE.",
    ),
    "logged as before": ({}, "The rows needed presume that more rows are logged as these were."),
    "pairs without plan": ({"why": "Because"}, "Some pairs have no plan. Because."),
    "plan too large": ({}, "What to log more of is not worked out for so many rows and actions."),
    "plan needs policies": (
        {},
        "What to log more of cannot be said: some policies are known only at the logged actions.",
    ),
    "actors unknown": (
        {"policies": "'now', 'old'"},
        "The policies that acted are not all known ('now', 'old'), so there are no propensities",
    ),
    "density products": (
        {},
        "Probabilities of sequences are products of the policies' densities",
    ),
    "sequence proxies": (
        {},
        "Probabilities of sequences are proxies (how near a policy's actions are to the logged ones): read "
        "the order of scores and differences, not their size",
    ),
    "densities not used": (
        {"policies": "'now', 'old'"},
        "The densities that 'now', 'old' can give are not used: not every policy has them",
    ),
    "probabilities rescaled": (
        {"log": -812.34},
        "All probabilities were divided by the largest, e^-812.3: a common factor changes no order",
    ),
    "behavior probability 0": (
        {"episode": 3, "episodes": "2 episodes"},
        "IPS and DRE are left out: the behaviour policy's own probability is 0 in episode 3 (2 episodes)",
    ),
    "ratio too large": (
        {"log": -812.34},
        "IPS and DRE are left out: a ratio of probabilities is e^-812.3",
    ),
    "tiny propensities": (
        {},
        "Propensities below 1e-30 are used only inside the ratios of IPS and DRE",
    ),
    "discounted": (
        {"gamma": 0.9},
        "The reward of step t = 0, 1, ... counts 0.9^t times",
    ),
    "policy impossible": (
        {"policy": "new"},
        "Policy 'new' has probability 0 in every episode: nothing that was logged speaks of it",
    ),
    "episodes cut short": (
        {"episodes": "2 episodes", "step": 100},
        "2 episodes stopped before step 100 without having ended: returns are not whole",
    ),
    "smoothed": (
        {"kernel": "gaussian", "bandwidth": "0.25"},
        "Policies are smoothed by the gaussian kernel with bandwidth 0.25: what is judged are those",
    ),
    "densities known": (
        {},
        "The densities of the logged actions are known, and weights are ratios to them",
    ),
    "densities not needed": (
        {},
        "The gated procedure does without the densities, and assumes that logging did not seek reward",
    ),
    "model at chosen actions": (
        {},
        "The model of the reward is asked at the actions that policies choose: with it DRE, SNDR and "
        "DirectModel aim at the policies themselves, not at the smoothed ones that IPS and SNIPS judge",
    ),
    "model at chosen actions, warning": (
        {},
        "the model of the reward is asked at the actions that policies choose: with it DRE, SNDR and "
        "DirectModel aim at the policies themselves, not at the smoothed ones that IPS and SNIPS judge.",
    ),
    "unseen densities, warning": (
        {"policy": "high", "mean_weight": 0.4567},
        "the log has not seen all that 'high' does, or its densities are wrong: mean weight 0.457, not 1. Remedy: "
        "compare policies that choose actions well within the range that was logged.",
    ),
    "new actions": (
        {"policy": "new", "actions": "'emial', 'd'", "meant": " Did you mean 'email'?"},
        "policy 'new' can play actions that the log's action space lacks: 'emial', 'd'. Did you mean 'email'?",
    ),
    "labels matched": (
        {"policy": "new", "kind": "numbers", "theirs": "1, 2", "ours": "'1', '2'"},
        "policy 'new' names its actions by numbers (1, 2); podium takes them for the log's '1', '2'.",
    ),
    "recipes": (
        {"policies": "'new'", "folds": 5, "factor": 1.5},
        "'new' learned from this log: on each of 5 folds podium judges what was learned from the other folds, with "
        "errors widened 1.5 times since these share rows. The answer is about the recipe, not about one fixed model",
    ),
    "SPEC and column": (
        {"policy": "new", "spec": "uniform"},
        "policy 'new': 'uniform' is read as a SPEC, not as the log's column of that name; write column:uniform for the "
        "column.",
    ),
    "conflicting rows": (
        {"policy": "new", "rows": "3 rows"},
        "policy 'new' has different probabilities in rows of one (state, action) (3 rows): it depends on "
        "something that the state columns leave out.",
    ),
    "renormalized": (
        {"policy": "new", "rows": "3 rows", "share": 0.125},
        "policy 'new' plays actions that were not eligible in 3 rows; 12.5% of its probability was moved to the "
        "eligible actions.",
    ),
    "actions named by slot": (
        {},
        "the lists of actions change from row to row and have no ids, so an action is only its place in the list; give "
        "every action a tag or an id if a place can hold different items.",
    ),
    "drift, states": (
        {"what": "age and 2 more", "early": "41.2", "late": "55.1", "p_value": 0.00004},
        "the states changed over time (age and 2 more: 41.2 in the first half of the rows, 55.1 in the second; chance: "
        "4e-05). Values are averages over states of both.",
    ),
    "drift, states alone": (
        {"what": "age", "early": "41.2", "late": "55.1", "p_value": 0.00004},
        "the states changed over time (age: 41.2 in the first half of the rows, 55.1 in the second; chance: 4e-05), "
        "and podium finds no other change: rewards and differences among similar states stayed alike. Values are "
        "averages over states of both halves.",
    ),
    "drift, actions": (
        {"what": "action 'call'", "early": "35%", "late": "65%", "p_value": 0.00004},
        "the logged actions changed over time (action 'call': 35% of the first half of the rows, 65% of the second; "
        "chance: 4e-05). Verdicts that need propensities do not know of it.",
    ),
    "drift, propensities": (
        {"what": "action 'call'", "early": "-0.15", "late": "0.15", "p_value": 0.00004},
        "the logged actions departed from their propensities differently over time (action 'call': share less "
        "propensity -0.15 in the first half of the rows, 0.15 in the second; chance: 4e-05), so the propensities are "
        "wrong in some rows. Check that they hold for both halves.",
    ),
    "drift, rewards": (
        {"what": "the reward", "early": "0.2", "late": "0.5", "p_value": 0.00004},
        "rewards changed over time among similar states and actions (the reward: 0.2 in the first half of the rows, "
        "0.5 in the second; chance: 4e-05). Compare recent rows alone with --since TIME.",
    ),
    "drift, pairs": (
        {"what": "new − old", "early": "0.2", "late": "-0.1", "p_value": 0.00004},
        "the difference of policies changed over time (new − old: 0.2 in the first half of the rows, -0.1 in the "
        "second; chance: 4e-05), so the answer may not hold from now on. Compare recent rows alone with --since TIME.",
    ),
    "since": (
        {"time": "2026-03-01", "rows": "40 rows", "of": 1200, "column": "day"},
        "Used only the 40 rows of 1,200 from 2026-03-01 on (column 'day')",
    ),
    "rule supported": (
        {
            "sentence": "if age is at least 66 then call, otherwise sms",
            "rows": 1250,
            "others": "always sms and always call",
            "first": "always sms",
            "difference": "0.12",
            "interval": "95% interval [0.05, 0.19]",
        },
        "A rule worth trying: if age is at least 66 then call, otherwise sms. On 1,250 rows that it never saw it is "
        "better than always sms and always call: always sms by 0.12 (95% interval [0.05, 0.19])",
    ),
    "rule not supported": (
        {
            "sentence": "if age is at least 66 then call, otherwise sms",
            "rows": 250,
            "others": "always sms and always call",
            "first": "always sms",
            "difference": "0.02",
            "interval": "95% interval [-0.05, 0.09]",
        },
        "None that this log can support. The best rule found is: if age is at least 66 then call, otherwise sms. On "
        "250 rows that it never saw podium cannot show that it is better than always sms and always call: the "
        "difference from always sms is 0.02 (95% interval [-0.05, 0.09])",
    ),
    "no rule": (
        {"rows": 250, "depth": 2, "action": "sms"},
        "None that this log can support: on 250 rows, cross-validated, no rule of depth 2 or less does better than "
        "always choosing sms",
    ),
    "no rule possible": (
        {"depth": 1},
        "None that this log can support: no rule of depth 1 or less chooses only actions that were possible in every "
        "row",
    ),
    "too few rows for a rule": (
        {"have": "80 rows", "least": "100 rows"},
        "None that this log can support: it has 80 rows, and a rule needs at least 100 rows, half of them to find it "
        "and half to judge it",
    ),
    "rule searched": (
        {"fitted": 1000, "judged": 1001, "depth": 2, "seed": 0},
        "Found on 1,000 rows, drawn with seed 0, by a tree of depth 2 or less on doubly robust scores; judged on the "
        "other 1,001, which did not influence it",
    ),
    "rule without propensities": (
        {},
        "The log has no propensities: the search estimates them, and assumes that everything that influenced both the "
        "choice of actions and the reward is among the state columns",
    ),
    "rule actions left out": (
        {"least": 10, "most": 20, "actions": "'fax', 'pigeon'"},
        "Actions that the rule could not choose, since fewer than 10 of the searched rows hold them or 20 others are "
        "more common: 'fax', 'pigeon'",
    ),
    "rule columns left out": (
        {"columns": "name, day"},
        "Columns that the rule could not ask for (neither numbers nor a few texts): name, day",
    ),
    "doubtful propensities": (
        {
            "doubt": "30 rows are too few to learn how actions were chosen",
            "advice": "Use LDE, which needs no propensities",
        },
        "estimated propensities: 30 rows are too few to learn how actions were chosen. Use LDE, which needs "
        "no propensities.",
    ),
    "one action": (
        {},
        "only one action was logged, so nothing shows how others would have been chosen",
    ),
    "few rows": (
        {"rows": 7},
        "7 rows are too few to learn how actions were chosen",
    ),
    "calibration": (
        {"misplaced": 0.125},
        "the probabilities are not those with which actions occur (12% of rows misplaced)",
    ),
    "balance": (
        {"feature": "age", "action": "'a'", "z": 4.56},
        "the estimate misses how age goes with action 'a' (z = 4.6)",
    ),
    "rare actions": (
        {"rows": 7, "actions": "'c', 'd'"},
        "fewer than 7 rows show each of the actions 'c', 'd'",
    ),
    "encoding": (
        {"file": "log.csv", "encoding": "UTF-16"},
        "log.csv is UTF-16, not UTF-8; it was read as such",
    ),
    "sheet": (
        {"sheet": "Visits", "others": "'Visits', 'Notes'"},
        "Read the sheet 'Visits'; --sheet names another of 'Visits', 'Notes'",
    ),
    "title": (
        {"lines": "2 lines", "header": 3},
        "Skipped 2 lines above the header, which is on line 3",
    ),
    "nameless columns": (
        {"columns": "1 empty column"},
        "Left out 1 empty column without a name",
    ),
    "total row": ({"line": 62}, "Left out the last row (line 62), which holds totals"),
    "packed": ({"file": "log.csv", "packing": "gzip"}, "log.csv is gzip inside; it was unpacked"),
    "file inside": ({"file": "log.zip", "member": "log.csv"}, "Read 'log.csv' inside log.zip"),
    "another format": ({"file": "log.csv", "format": "Parquet"}, "log.csv is Parquet inside; it was read as such"),
    "invisible in names": (
        {"columns": "'age', 'spend'"},
        "Removed characters that do not show from the names of these columns: 'age', 'spend'",
    ),
    "labels merged": (
        {"column": "action", "labels": "'call'", "rows": "3 rows"},
        "Column 'action': labels that look the same were merged into 'call', by removing spaces and characters that do "
        "not show (3 rows changed)",
    ),
    "column without a name": (
        {"column": "column 3", "place": 3},
        "Column 3 has no name; it is called 'column 3'",
    ),
    "column twice": ({"column": "age"}, "Two columns are called 'age' and are equal; one of them was kept"),
    "name twice": (
        {"column": "age", "called": "age (2)"},
        "Two columns are called 'age' and differ; the second is called 'age (2)'",
    ),
    "further headers": (
        {"rows": "2 rows", "lines": "lines 2 to 3"},
        "Left out 2 rows of labels below the header (lines 2 to 3)",
    ),
    "nameless index": ({}, "Left out the first column, which has no name and numbers the rows"),
    "role by its name": ({"column": "Action", "role": "action"}, "Column 'Action' is the action"),
    "foot": (
        {"rows": "2 rows", "line": 63, "note": "'Source: CRM'"},
        "Left out 2 rows below the table, from line 63 on: 'Source: CRM'",
    ),
    "numbers as written": (
        {"column": "spend", "words": "decimal commas", "example": "'3,5'", "number": 3.5},
        "Column 'spend': read decimal commas, such as '3,5' as 3.5",
    ),
    "dates as written": (
        {"column": "day", "order": "day first", "example": "'31/12/2024'", "date": "2024-12-31"},
        "Column 'day': read dates as day first, such as '31/12/2024' as 2024-12-31",
    ),
    "outcome in words": (
        {"column": "recovered", "success": "'Yes'", "others": "'No'"},
        "Column 'recovered': 'Yes' counts as 1, 'No' as 0",
    ),
    "missing number": (
        {"column": "age", "gaps": "'n/a' (2 rows)", "fill": 41.0},
        "Column 'age': 'n/a' (2 rows) taken for missing; the state has the median 41 there, and 'age missing' marks "
        "these rows",
    ),
    "missing text": (
        {"column": "region", "gaps": "empty (1 row)", "level": "(missing)"},
        "Column 'region': empty (1 row) taken for missing, a value of its own ('(missing)')",
    ),
    "empty column": ({"column": "notes"}, "Left out column 'notes', which is empty"),
    "empty rows": ({"rows": "1 row"}, "Left out 1 row without any value"),
    "dropped rows": (
        {"rows": "3 rows", "of": 1200, "why": "column 'reward' is missing, empty (3 rows)"},
        "Left out 3 rows of 1,200 (--drop-missing): column 'reward' is missing, empty (3 rows)",
    ),
    "not taken as state": (
        {"columns": "visit_id (ids)"},
        "Not taken as state: visit_id (ids); --state COL takes a column as state",
    ),
    "recorded after": (
        {"columns": "'status', 'revenue'"},
        "Not taken as state: 'status', 'revenue', which may have been recorded after the action; --state COL takes a "
        "column as state",
    ),
    "harmful outcome": (
        {"column": "churned"},
        "Column 'churned': more of it may be worse; if so, add --lower-is-better",
    ),
    "codes of yes and no": (
        {"column": "converted"},
        "Column 'converted' holds only 1 and 2, which may be codes of yes and no; --success 1 counts 1 as 1 and 2 as 0",
    ),
    "sentinel": (
        {"column": "age", "value": -999.0, "rows": "3 rows"},
        "Column 'age' holds -999 in 3 rows, far from all other values; if that stands for a missing value, empty these "
        "cells",
    ),
    "odd states alone": (
        {"columns": "day (dates)"},
        "The state is only day (dates), which may say little; --state COL takes other columns as state",
    ),
    "no state": ({}, "No column is state, so all rows count as one state"),
    "model of another version": (
        {"policy": "new", "file": "new.skops", "made": "1.4.0", "installed": "1.5.1"},
        "policy 'new': new.skops was made with scikit-learn 1.4.0, and 1.5.1 is installed; its probabilities may "
        "differ from those that it was made to give.",
    ),
    "tiny": (
        {"share": 0.07, "below": 0.01},
        "7% of the rows have a probability below 0.01",
    ),
}


def test_every_sentence_is_read_here() -> None:
    assert SAID.keys() == SENTENCES.keys()


@pytest.mark.parametrize("code", SAID)
def test_sentences(code: str) -> None:
    fields, sentence = SAID[code]
    fact = Fact(code, **fields)
    assert fact == sentence
    assert (fact.code, fact.fields) == (code, fields)
    assert {name for _, name, _, _ in string.Formatter().parse(SENTENCES[code]) if name} == fields.keys()


def test_facts_reach_another_process_whole() -> None:
    fact = Fact("unseen weight", policy="new", mean_weight=0.8)
    again = pickle.loads(pickle.dumps(fact))
    assert isinstance(again, Fact)
    assert (again, again.code, again.fields) == (fact, fact.code, fact.fields)


def test_facts_in_json() -> None:
    assert fact_dict("a plain text") == {"code": None, "text": "a plain text"}
    assert fact_dict(Fact("open among many", pairs=3)) == {
        "code": "open among many",
        "text": "Sure enough alone, but not among 3 pairs judged together",
        "pairs": 3,
    }


def test_reasons_and_warnings_of_a_comparison_are_facts() -> None:
    log, policies = sample(60, effect=0.0)
    log = podium.Log(np.arange(60), log.actions, log.rewards, propensities=log.propensities)
    result = podium.compare(log, policies, verdicts="gated")
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert content["warnings"] == [fact["text"] for fact in content["warning_facts"]]
    assert [fact["code"] for fact in content["warning_facts"]] == ["state is an ID"]
    reasons = [reason for pair in result.pairs for reason in pair.reasons]
    assert reasons
    assert all(isinstance(reason, Fact) for reason in (*reasons, *result.warnings, *result.settings.notes))
    for pair in content["pairs"]:
        assert pair["reasons"] == [fact["text"] for fact in pair["reason_facts"]]


def test_figures_of_facts_are_plain_numbers() -> None:
    """JSON cannot hold those of NumPy."""
    log = podium.Log([0] * 4, [1, 0, 0, 0], [1.0, 0.0, 0.5, 0.2], propensities=[0.1, 0.9, 0.9, 0.9])
    result = podium.compare(log, {"one": "constant:1", "zero": "constant:0"}, "SNIPS", verdicts="paired t")
    for fact in (r for pair in result.pairs for r in pair.reasons):
        assert not any(isinstance(value, np.generic) for value in fact.fields.values())
    json.dumps(result.to_dict(), allow_nan=False)
