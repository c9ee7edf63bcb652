/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIGHTS_H
#define WEIGHTS_H

void weights(void);	/* what they promise of wrr */
void tables(void);	/* the text of net.mptcp.weights and .priorities */

#endif
