/* SPDX-License-Identifier: GPL-2.0 */
/* Version of the daemon, as --version and Identify report it. */
#ifndef ORNICD_VERSION_H
#define ORNICD_VERSION_H

#define ORNICD_VERSION	"0.1.0"

#endif /* ORNICD_VERSION_H */
