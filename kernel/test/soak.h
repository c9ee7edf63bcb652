/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SOAK_H
#define SOAK_H

#include <stdint.h>

/* Runs scenarios first to first + count - 1 of that seed; 0 if all are right. */
int soak(unsigned int first, unsigned int count, uint64_t seed);

#endif
