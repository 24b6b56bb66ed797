# SPDX-License-Identifier: Apache-2.0
"""From single observations of the data plane to BW, T_res, L_D and N_C with count, age and uncertainty."""
