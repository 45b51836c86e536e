"""Where Example 1's text, its printed tables and the program behind them disagree, and which reading is used here."""

DEVIATIONS: tuple[tuple[str, str], ...] = (
    (
        "Duplicates and normalisation",
        "DiM and LDE keep one row per (state, action), sum over the logged actions of a state and divide by the number "
        "of states; IPS and DRE keep every draw, 1/(S m). This reading gives the printed tables. Dividing by the rows "
        "instead changes evaluation errors for m > 1 (DiM at m = 500: -.396, printed -.0548), but no comparison of "
        "LDE or DiM. Dropping repeated draws from IPS and DRE would bias them.",
    ),
    (
        "One baseline for LDE and DRE",
        "The baseline is the mean reward over the distinct observed (state, action), one number per test, for DRE too; "
        "podium's own default for DRE is the mean over all rows.",
    ),
    (
        "The reward of Example 1.2",
        "The printed tables come from (3/2 + cos 2π(s+a) + (1/2) cos 10π(s−a)) exp(−(a + cos 2πs)²). The formula in "
        "the text, (3 + cos + cos)/2 · exp, misses them by far; it is offered as the reward 1.2-text.",
    ),
    (
        "How a prescribed difference is reached",
        "Two random policies are mixed with the best and the worst policy in equal measure. Where they differ by more "
        "than α already, the share is negative and so are a few 'probabilities', by a little: in 2-3% of tests at "
        "α = .01, never from .02 on. podium's own verdicts see such a policy clipped at 0.",
    ),
    (
        "What a standard deviation is over",
        "Average and standard deviation (divided by n, not n - 1) pool the errors of both policies of each test: 2,000 "
        "errors from 1,000 tests.",
    ),
    (
        "What a correlation is over",
        "Correlations pool the ten values of α at each m, 10,000 tests: at a single α the true difference is constant.",
    ),
    (
        "Spearman ranks rounding noise",
        "True differences at one α are equal but for rounding in the 16th digit. The printed coefficients rank that "
        "noise; averaged ties would be up to .005 higher. Here the raw differences are ranked too, so a replay comes "
        "close and cannot be exact.",
    ),
    (
        "Rounding of the printed numbers",
        "Most printed errors were rounded to six decimals first and then, half up, to three digits: 9 of 160 show it. "
        "An entry counts as equal when either rounding gives the printed text.",
    ),
    (
        "Standard errors and z",
        "Standard errors are clustered by test: the two policies of a test share its log. Those of standard deviations "
        "are bootstrapped by test, and averaged over neighbouring cells, since the errors of IPS and DRE have heavy "
        "tails. Every standard error includes the "
        "rounding of the printed number, which is larger than the sampling error of some entries of DiM. "
        "z = (reproduced − printed) / (√2 standard error), since both are samples.",
    ),
    (
        "A bold number",
        "Example 1.1, m = 500: the paper marks DRE as best; LDE's average error of −7.6e-05 is smaller than DRE's "
        "−1.15e-04.",
    ),
    (
        "Random numbers",
        "Without replay, both reward functions share the draws of a test, and the normals are made in single precision "
        "(24 bits, up to 6.6 standard deviations), the uniforms with 32 bits; all sums are in double precision. Replay "
        "uses the paper's own generator: numpy.random.RandomState(2021), seeded anew at each of the four sweeps, "
        "drawing behaviour normals, m uniforms per state, normals of π, normals of μ.",
    ),
)
