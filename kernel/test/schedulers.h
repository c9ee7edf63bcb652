/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SCHEDULERS_H
#define SCHEDULERS_H

/* Runs the tests of single schedulers, or those of one; 0 if all are right. */
int schedulers(const char *only);

#endif
