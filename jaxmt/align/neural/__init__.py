"""Neural HMM word alignment: a network of windows, jump scores, Viterbi."""
