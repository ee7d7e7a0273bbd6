/*
 * Puts a saved model into the tables of a job, which continues from it (--model-in). If the job has other learning
 * rates than the model, the optimizers' state is changed so that training continues from the same weights. It never
 * knows of epochs. Tests: test/learn/test_resume.c.
 */
#ifndef LEARN_TRAIN_RESUME_H
#define LEARN_TRAIN_RESUME_H

#include "learn/train/job.h"

PARAMO_MUST_USE paramo_err resume_model(struct customer *c);

#endif
