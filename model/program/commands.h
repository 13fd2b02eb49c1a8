/* commands.h - the verbs of skippipe-model. Each takes argv with the verb first and gives the
 * exit status: 0 done, 1 failed, 2 usage. */
#ifndef MODEL_PROGRAM_COMMANDS_H
#define MODEL_PROGRAM_COMMANDS_H

int command_train(int argc, char **argv);
int command_eval(int argc, char **argv);
int command_generate(int argc, char **argv);
int command_export(int argc, char **argv);
int command_import(int argc, char **argv);
int command_tokenize(int argc, char **argv);

#endif
