/*
 * The program's verbs, one function each, called by cmd/main.c with argv[0] the verb's name. Each returns the
 * exit code of the program: 0 done, 1 failed (one line on stderr says why), 2 wrong usage; others where its
 * man page says.
 */
#ifndef CMD_VERBS_H
#define CMD_VERBS_H

int cmd_checkpoint(int argc, char **argv);
int cmd_data(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_scheduler(int argc, char **argv);
int cmd_server(int argc, char **argv);
int cmd_worker(int argc, char **argv);
int cmd_drain(int argc, char **argv);
int cmd_ring(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_train(int argc, char **argv);

#endif
