"""Where Example 3's text and the program behind its tables disagree or are silent, and which reading is used here."""

DEVIATIONS: tuple[tuple[str, str], ...] = (
    (
        "Environments and libraries",
        "The paper's PyBullet environments live on as pybullet_envs_gymnasium; Stable-Baselines3 has changed too. "
        "'1,000 epochs' are 1,000 steps in the environment (PPO collects 2,048 before it learns). The defaults of "
        "DDPG and TD3 were train_freq=(1, 'episode'), gradient_steps=-1, batch_size=100 then and are 1, 1, 256 now: "
        "sb3_defaults='paper' or 'current'. The replay buffer holds 10,000 transitions instead of a million, of "
        "which no more than 2,000 are ever used.",
    ),
    (
        "At which states a policy is asked",
        "The text compares a logged action with the policy's action at the logged state; that is the default, and "
        "needs no simulator. The authors' program resets the environment with the seed of the logged episode and "
        "lets the policy go its own way, step t against step t. Both are reported. Where the policy's own episode "
        "ends first, it is followed past its end as long as the logged episode lasts.",
    ),
    (
        "Logged actions are drawn, compared ones are not",
        "Episodes are logged by each policy's own draws, and so are the rollouts for the true values; the proxy "
        "compares with the policy's deterministic action. DDPG and TD3 do not draw, so their own episodes have "
        "propensity 1.",
    ),
    (
        "Several coordinates",
        "The text computes the proxy for each coordinate and averages them; the program averages inside the "
        "exponent. The average can also be taken at each step. All three are reported.",
    ),
    (
        "A constant in the denominator",
        "The program divides by p + 1e-6. Here IPS and DRE divide by p, unless constant=1e-6 asks for it; both are "
        "reported.",
    ),
    (
        "Logarithms and exact zeros",
        "A proxy is a product of a hundred factors and is computed as a sum of logarithms. It is exactly 0 where the "
        "policy would once have taken the opposite end of the action range. The sign of a difference of two "
        "estimates is found after dividing both by their largest weight, so that nothing is lost to underflow. Two "
        "policies with proxy 0 on all episodes tie, and a tie counts as right, as in the paper's score.",
    ),
    (
        "True values",
        "The true value of a policy is the mean return of 100 rollouts of at most 100 steps. It has a standard "
        "error; the share of pairs whose true values differ by less than two of them is reported beside the scores.",
    ),
    (
        "Standard errors in Example 3",
        "The 15 logs of one training share its policies and their true order. Standard errors are clustered by "
        "training: of averages from the 15 means, of standard deviations by the jackknife. z = (reproduced − printed) "
        "/ (√2 standard error), since the printed numbers have as many trainings behind them. The trainings have heavy "
        "tails, so that a standard deviation over 15 of them is worth less than its z says.",
    ),
)
