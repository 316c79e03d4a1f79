/* The elementary functions of the oracle's lines as the library has them: every result of theirs has a test of its own.
 */
#define EXP(x)               real_exp(x)
#define LOG(x)               real_log(x)
#define LOG1P(x)             real_log1p(x)
#define TANH(x)              real_tanh(x)
#define LOG_COSH(x)          real_log_cosh(x)
#define SIGMOID(x)           real_sigmoid(x)
#define SOFTPLUS(x)          real_softplus(x)
#define QUICK_SIGMOID(x)     real_quick_sigmoid(x)
#define RATIO(a, b)          real_ratio(a, b)
#define BY_PARAMETER(a, b)   by_parameter(a, b)
#define LOG1P_OF_RATIO(a, b) real_log1p_of_ratio(a, b)
#define LOG_LAG(a, b)        real_log_lag(a, b)
