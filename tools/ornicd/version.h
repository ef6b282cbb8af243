/* SPDX-License-Identifier: GPL-2.0 */
/* Version of ornicd and ornicctl: in --version, Identify, control method version, capture files. */
#ifndef ORNICD_VERSION_H
#define ORNICD_VERSION_H

#define ORNICD_VERSION	"0.1.0"

#endif /* ORNICD_VERSION_H */
