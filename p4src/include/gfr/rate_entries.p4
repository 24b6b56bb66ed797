// SPDX-License-Identifier: Apache-2.0
// Entries of the tables of eq. (2), written by p4src/rate_table.py; do not edit.
#ifndef FAIRLANE_GFR_RATE_ENTRIES_P4
#define FAIRLANE_GFR_RATE_ENTRIES_P4

#define RATE_H_ENTRIES \
    0x00000000 &&& 0xffff0000 : set_h(2251006893, 2260520461, 0xffff); \
    0x00010000 &&& 0xffff0000 : set_h(2109748975, 2073384705, 0xffff); \
    0x00020000 &&& 0xffff0000 : set_h(1980185266, 1903602737, 0xffff); \
    0x00030000 &&& 0xffff0000 : set_h(1861231274, 1749461676, 0xffff); \
    0x00040000 &&& 0xffff0000 : set_h(1751909556, 1609424540, 0xffff); \
    0x00050000 &&& 0xffff0000 : set_h(1651338723, 1482111674, 0xffff); \
    0x00060000 &&& 0xffff0000 : set_h(1558723607, 1366284194, 0xffff); \
    0x00070000 &&& 0xffff0000 : set_h(1473346463, 1260829195, 0xffff); \
    0x00080000 &&& 0xffff0000 : set_h(1394559101, 1164746553, 0xffff); \
    0x00090000 &&& 0xffff0000 : set_h(1321775828, 1077137142, 0xffff); \
    0x000a0000 &&& 0xffff0000 : set_h(1254467144, 997192306, 0xffff); \
    0x000b0000 &&& 0xffff0000 : set_h(1192154086, 924184453, 0xffff); \
    0x000c0000 &&& 0xffff0000 : set_h(1134403157, 857458657, 0xffff); \
    0x000d0000 &&& 0xffff0000 : set_h(1080821792, 796425143, 0xffff); \
    0x000e0000 &&& 0xffff0000 : set_h(1031054283, 740552575, 0xffff); \
    0x000f0000 &&& 0xffff0000 : set_h(984778123, 689362047, 0xffff); \
    0x00100000 &&& 0xffff0000 : set_h(941700737, 642421716, 0xffff); \
    0x00110000 &&& 0xffff0000 : set_h(901556533, 599341994, 0xffff); \
    0x00120000 &&& 0xffff0000 : set_h(864104269, 559771244, 0xffff); \
    0x00130000 &&& 0xffff0000 : set_h(829124674, 523391932, 0xffff); \
    0x00140000 &&& 0xffff0000 : set_h(796418322, 489917176, 0xffff); \
    0x00150000 &&& 0xffff0000 : set_h(765803712, 459087657, 0xffff); \
    0x00160000 &&& 0xffff0000 : set_h(737115551, 430668854, 0xffff); \
    0x00170000 &&& 0xffff0000 : set_h(710203200, 404448554, 0xffff); \
    0x00180000 &&& 0xffff0000 : set_h(684929279, 380234636, 0xffff); \
    0x00190000 &&& 0xffff0000 : set_h(661168416, 357853070, 0xffff); \
    0x001a0000 &&& 0xfffe0000 : set_h(638575353, 327439291, 0x1ffff); \
    0x001c0000 &&& 0xfffe0000 : set_h(597669447, 291855042, 0x1ffff); \
    0x001e0000 &&& 0xfffe0000 : set_h(561208110, 261198611, 0x1ffff); \
    0x00200000 &&& 0xfffe0000 : set_h(528575884, 234688855, 0x1ffff); \
    0x00220000 &&& 0xfffe0000 : set_h(499254877, 211679258, 0x1ffff); \
    0x00240000 &&& 0xfffe0000 : set_h(472807946, 191633402, 0x1ffff); \
    0x00260000 &&& 0xfffe0000 : set_h(448864940, 174105078, 0x1ffff); \
    0x00280000 &&& 0xfffe0000 : set_h(427111439, 158722155, 0x1ffff); \
    0x002a0000 &&& 0xfffe0000 : set_h(407279495, 145173446, 0x1ffff); \
    0x002c0000 &&& 0xfffe0000 : set_h(389140026, 133198025, 0x1ffff); \
    0x002e0000 &&& 0xfffe0000 : set_h(372496533, 122576499, 0x1ffff); \
    0x00300000 &&& 0xfffe0000 : set_h(357179918, 113123879, 0x1ffff); \
    0x00320000 &&& 0xfffe0000 : set_h(343044185, 104683741, 0x1ffff); \
    0x00340000 &&& 0xfffe0000 : set_h(329962874, 97123436, 0x1ffff); \
    0x00360000 &&& 0xfffe0000 : set_h(317826089, 90330143, 0x1ffff); \
    0x00380000 &&& 0xfffe0000 : set_h(306538024, 84207635, 0x1ffff); \
    0x003a0000 &&& 0xfffe0000 : set_h(296014894, 78673587, 0x1ffff); \
    0x003c0000 &&& 0xfffe0000 : set_h(286183191, 73657368, 0x1ffff); \
    0x003e0000 &&& 0xfffe0000 : set_h(276978231, 69098203, 0x1ffff); \
    0x00400000 &&& 0xfffc0000 : set_h(268252070, 63024407, 0x3ffff); \
    0x00440000 &&& 0xfffc0000 : set_h(252508480, 56060595, 0x3ffff); \
    0x00480000 &&& 0xfffc0000 : set_h(238503378, 50181852, 0x3ffff); \
    0x004c0000 &&& 0xfffc0000 : set_h(225966060, 45176689, 0x3ffff); \
    0x00500000 &&& 0xfffc0000 : set_h(214678550, 40881839, 0x3ffff); \
    0x00540000 &&& 0xfffc0000 : set_h(204463589, 37169937, 0x3ffff); \
    0x00580000 &&& 0xfffc0000 : set_h(195175678, 33940619, 0x3ffff); \
    0x005c0000 &&& 0xfffc0000 : set_h(186694357, 31114039, 0x3ffff); \
    0x00600000 &&& 0xfffc0000 : set_h(178919084, 28626096, 0x3ffff); \
    0x00640000 &&& 0xfffc0000 : set_h(171765310, 26424889, 0x3ffff); \
    0x00680000 &&& 0xfffc0000 : set_h(165161440, 24468053, 0x3ffff); \
    0x006c0000 &&& 0xfffc0000 : set_h(159046450, 22720746, 0x3ffff); \
    0x00700000 &&& 0xfffc0000 : set_h(153368012, 21154110, 0x3ffff); \
    0x00740000 &&& 0xfffc0000 : set_h(148081005, 19744078, 0x3ffff); \
    0x00780000 &&& 0xfffc0000 : set_h(143146313, 18470461, 0x3ffff); \
    0x007c0000 &&& 0xfffc0000 : set_h(138529862, 17316216, 0x3ffff); \
    0x00800000 &&& 0xfff80000 : set_h(134156041, 15783057, 0x7ffff); \
    0x00880000 &&& 0xfff80000 : set_h(126270963, 14030106, 0x7ffff); \
    0x00900000 &&& 0xfff80000 : set_h(119261041, 12553794, 0x7ffff); \
    0x00980000 &&& 0xfff80000 : set_h(112988276, 11298828, 0x7ffff); \
    0x00a00000 &&& 0xfff80000 : set_h(107342226, 10223070, 0x7ffff); \
    0x00a80000 &&& 0xfff80000 : set_h(102233458, 9293952, 0x7ffff); \
    0x00b00000 &&& 0xfff80000 : set_h(97588779, 8485982, 0x7ffff); \
    0x00b80000 &&& 0xfff80000 : set_h(93347711, 7778977, 0x7ffff); \
    0x00c00000 &&& 0xfff80000 : set_h(89459844, 7156788, 0x7ffff); \
    0x00c80000 &&& 0xfff80000 : set_h(85882827, 6606372, 0x7ffff); \
    0x00d00000 &&& 0xfff80000 : set_h(82580818, 6117098, 0x7ffff); \
    0x00d80000 &&& 0xfff80000 : set_h(79523281, 5680235, 0x7ffff); \
    0x00e00000 &&& 0xfff80000 : set_h(76684038, 5288555, 0x7ffff); \
    0x00e80000 &&& 0xfff80000 : set_h(74040521, 4936035, 0x7ffff); \
    0x00f00000 &&& 0xfff80000 : set_h(71573167, 4617624, 0x7ffff); \
    0x00f80000 &&& 0xfff80000 : set_h(69264937, 4329059, 0x7ffff); \
    0x01000000 &&& 0xfff00000 : set_h(67078024, 3945766, 0xfffff); \
    0x01100000 &&& 0xfff00000 : set_h(63135483, 3507527, 0xfffff); \
    0x01200000 &&& 0xfff00000 : set_h(59630521, 3138449, 0xfffff); \
    0x01300000 &&& 0xfff00000 : set_h(56494138, 2824707, 0xfffff); \
    0x01400000 &&& 0xfff00000 : set_h(53671113, 2555767, 0xfffff); \
    0x01500000 &&& 0xfff00000 : set_h(51116729, 2323488, 0xfffff); \
    0x01600000 &&& 0xfff00000 : set_h(48794390, 2121495, 0xfffff); \
    0x01700000 &&& 0xfff00000 : set_h(46673855, 1944744, 0xfffff); \
    0x01800000 &&& 0xfff00000 : set_h(44729922, 1789197, 0xfffff); \
    0x01900000 &&& 0xfff00000 : set_h(42941413, 1651593, 0xfffff); \
    0x01a00000 &&& 0xfff00000 : set_h(41290409, 1529274, 0xfffff); \
    0x01b00000 &&& 0xfff00000 : set_h(39761640, 1420059, 0xfffff); \
    0x01c00000 &&& 0xfff00000 : set_h(38342019, 1322139, 0xfffff); \
    0x01d00000 &&& 0xfff00000 : set_h(37020260, 1234009, 0xfffff); \
    0x01e00000 &&& 0xfff00000 : set_h(35786583, 1154406, 0xfffff); \
    0x01f00000 &&& 0xfff00000 : set_h(34632469, 1082265, 0xfffff); \
    0x02000000 &&& 0xffe00000 : set_h(33539012, 986442, 0x1fffff); \
    0x02200000 &&& 0xffe00000 : set_h(31567741, 876882, 0x1fffff); \
    0x02400000 &&& 0xffe00000 : set_h(29815260, 784612, 0x1fffff); \
    0x02600000 &&& 0xffe00000 : set_h(28247069, 706177, 0x1fffff); \
    0x02800000 &&& 0xffe00000 : set_h(26835556, 638942, 0x1fffff); \
    0x02a00000 &&& 0xffe00000 : set_h(25558365, 580872, 0x1fffff); \
    0x02c00000 &&& 0xffe00000 : set_h(24397195, 530374, 0x1fffff); \
    0x02e00000 &&& 0xffe00000 : set_h(23336928, 486186, 0x1fffff); \
    0x03000000 &&& 0xffe00000 : set_h(22364961, 447299, 0x1fffff); \
    0x03200000 &&& 0xffe00000 : set_h(21470707, 412898, 0x1fffff); \
    0x03400000 &&& 0xffe00000 : set_h(20645204, 382319, 0x1fffff); \
    0x03600000 &&& 0xffe00000 : set_h(19880820, 355015, 0x1fffff); \
    0x03800000 &&& 0xffe00000 : set_h(19171009, 330535, 0x1fffff); \
    0x03a00000 &&& 0xffe00000 : set_h(18510130, 308502, 0x1fffff); \
    0x03c00000 &&& 0xffe00000 : set_h(17893292, 288601, 0x1fffff); \
    0x03e00000 &&& 0xffe00000 : set_h(17316234, 270566, 0x1fffff); \
    0x04000000 &&& 0xffc00000 : set_h(16769506, 246610, 0x3fffff); \
    0x04400000 &&& 0xffc00000 : set_h(15783871, 219220, 0x3fffff); \
    0x04800000 &&& 0xffc00000 : set_h(14907630, 196153, 0x3fffff); \
    0x04c00000 &&& 0xffc00000 : set_h(14123534, 176544, 0x3fffff); \
    0x05000000 &&& 0xffc00000 : set_h(13417778, 159735, 0x3fffff); \
    0x05400000 &&& 0xffc00000 : set_h(12779182, 145218, 0x3fffff); \
    0x05800000 &&& 0xffc00000 : set_h(12198597, 132593, 0x3fffff); \
    0x05c00000 &&& 0xffc00000 : set_h(11668464, 121546, 0x3fffff); \
    0x06000000 &&& 0xffc00000 : set_h(11182480, 111825, 0x3fffff); \
    0x06400000 &&& 0xffc00000 : set_h(10735353, 103225, 0x3fffff); \
    0x06800000 &&& 0xffc00000 : set_h(10322602, 95580, 0x3fffff); \
    0x06c00000 &&& 0xffc00000 : set_h(9940410, 88754, 0x3fffff); \
    0x07000000 &&& 0xffc00000 : set_h(9585505, 82634, 0x3fffff); \
    0x07400000 &&& 0xffc00000 : set_h(9255065, 77126, 0x3fffff); \
    0x07800000 &&& 0xffc00000 : set_h(8946646, 72150, 0x3fffff); \
    0x07c00000 &&& 0xffc00000 : set_h(8658117, 67642, 0x3fffff);

#define RATE_RECIPROCAL_ENTRIES \
    0x00000040 &&& 0xfffffffc : set_reciprocal(16772814, 1025394739, 0x3, 16); \
    0x00000044 &&& 0xfffffffc : set_reciprocal(15786642, 910733574, 0x3, 16); \
    0x00000048 &&& 0xfffffffc : set_reciprocal(14909974, 814283380, 0x3, 16); \
    0x0000004c &&& 0xfffffffc : set_reciprocal(14125535, 732382150, 0x3, 16); \
    0x00000050 &&& 0xfffffffc : set_reciprocal(13419499, 662244181, 0x3, 16); \
    0x00000054 &&& 0xfffffffc : set_reciprocal(12780673, 601719961, 0x3, 16); \
    0x00000058 &&& 0xfffffffc : set_reciprocal(12199897, 549129452, 0x3, 16); \
    0x0000005c &&& 0xfffffffc : set_reciprocal(11669604, 503144211, 0x3, 16); \
    0x00000060 &&& 0xfffffffc : set_reciprocal(11183487, 462702642, 0x3, 16); \
    0x00000064 &&& 0xfffffffc : set_reciprocal(10736245, 426948169, 0x3, 16); \
    0x00000068 &&& 0xfffffffc : set_reciprocal(10323397, 395183491, 0x3, 16); \
    0x0000006c &&& 0xfffffffc : set_reciprocal(9941121, 366836318, 0x3, 16); \
    0x00000070 &&& 0xfffffff8 : set_reciprocal(9582575, 329833835, 0x7, 16); \
    0x00000078 &&& 0xfffffff8 : set_reciprocal(8944252, 288469746, 0x7, 16); \
    0x00000080 &&& 0xfffffff8 : set_reciprocal(16771269, 508852731, 0x7, 17); \
    0x00000088 &&& 0xfffffff8 : set_reciprocal(15785348, 452145350, 0x7, 17); \
    0x00000090 &&& 0xfffffff8 : set_reciprocal(14908880, 404415714, 0x7, 17); \
    0x00000098 &&& 0xfffffff8 : set_reciprocal(14124601, 363863944, 0x7, 17); \
    0x000000a0 &&& 0xfffffff8 : set_reciprocal(13418696, 329119637, 0x7, 17); \
    0x000000a8 &&& 0xfffffff8 : set_reciprocal(12779978, 299124507, 0x7, 17); \
    0x000000b0 &&& 0xfffffff8 : set_reciprocal(12199291, 273050803, 0x7, 17); \
    0x000000b8 &&& 0xfffffff8 : set_reciprocal(11669073, 250243570, 0x7, 17); \
    0x000000c0 &&& 0xfffffff8 : set_reciprocal(11183018, 230179097, 0x7, 17); \
    0x000000c8 &&& 0xfffffff8 : set_reciprocal(10735830, 212434581, 0x7, 17); \
    0x000000d0 &&& 0xfffffff8 : set_reciprocal(10323027, 196665659, 0x7, 17); \
    0x000000d8 &&& 0xfffffff8 : set_reciprocal(9940790, 182589572, 0x7, 17); \
    0x000000e0 &&& 0xfffffff8 : set_reciprocal(9585846, 169972399, 0x7, 17); \
    0x000000e8 &&& 0xfffffff8 : set_reciprocal(9255373, 158619272, 0x7, 17); \
    0x000000f0 &&& 0xfffffff0 : set_reciprocal(8943736, 143660959, 0xf, 17); \
    0x00000100 &&& 0xfffffff0 : set_reciprocal(16770415, 253474605, 0xf, 18); \
    0x00000110 &&& 0xfffffff0 : set_reciprocal(15784632, 225274748, 0xf, 18); \
    0x00000120 &&& 0xfffffff0 : set_reciprocal(14908274, 201532317, 0xf, 18); \
    0x00000130 &&& 0xfffffff0 : set_reciprocal(14124084, 181355015, 0xf, 18); \
    0x00000140 &&& 0xfffffff0 : set_reciprocal(13418251, 164063158, 0xf, 18); \
    0x00000150 &&& 0xfffffff0 : set_reciprocal(12779592, 149131654, 0xf, 18); \
    0x00000160 &&& 0xfffffff0 : set_reciprocal(12198955, 136149647, 0xf, 18); \
    0x00000170 &&& 0xfffffff0 : set_reciprocal(11668778, 124791943, 0xf, 18); \
    0x00000180 &&& 0xfffffff0 : set_reciprocal(11182758, 114798433, 0xf, 18); \
    0x00000190 &&& 0xfffffff0 : set_reciprocal(10735599, 105959069, 0xf, 18); \
    0x000001a0 &&& 0xfffffff0 : set_reciprocal(10322821, 98102727, 0xf, 18); \
    0x000001b0 &&& 0xfffffff0 : set_reciprocal(9940606, 91088863, 0xf, 18); \
    0x000001c0 &&& 0xfffffff0 : set_reciprocal(9585681, 84801184, 0xf, 18); \
    0x000001d0 &&& 0xfffffff0 : set_reciprocal(9255224, 79142790, 0xf, 18); \
    0x000001e0 &&& 0xffffffe0 : set_reciprocal(8943466, 71687746, 0x1f, 18); \
    0x00000200 &&& 0xffffffe0 : set_reciprocal(16769967, 126500524, 0x1f, 19); \
    0x00000220 &&& 0xffffffe0 : set_reciprocal(15784257, 112438811, 0x1f, 19); \
    0x00000240 &&& 0xffffffe0 : set_reciprocal(14907957, 100598010, 0x1f, 19); \
    0x00000260 &&& 0xffffffe0 : set_reciprocal(14123814, 90533866, 0x1f, 19); \
    0x00000280 &&& 0xffffffe0 : set_reciprocal(13418018, 81907904, 0x1f, 19); \
    0x000002a0 &&& 0xffffffe0 : set_reciprocal(12779390, 74458582, 0x1f, 19); \
    0x000002c0 &&& 0xffffffe0 : set_reciprocal(12198779, 67981223, 0x1f, 19); \
    0x000002e0 &&& 0xffffffe0 : set_reciprocal(11668623, 62313795, 0x1f, 19); \
    0x00000300 &&& 0xffffffe0 : set_reciprocal(11182621, 57326678, 0x1f, 19); \
    0x00000320 &&& 0xffffffe0 : set_reciprocal(10735478, 52915184, 0x1f, 19); \
    0x00000340 &&& 0xffffffe0 : set_reciprocal(10322713, 48994014, 0x1f, 19); \
    0x00000360 &&& 0xffffffe0 : set_reciprocal(9940509, 45493103, 0x1f, 19); \
    0x00000380 &&& 0xffffffe0 : set_reciprocal(9585594, 42354469, 0x1f, 19); \
    0x000003a0 &&& 0xffffffe0 : set_reciprocal(9255146, 39529798, 0x1f, 19); \
    0x000003c0 &&& 0xffffffe0 : set_reciprocal(8946719, 36978567, 0x1f, 19); \
    0x000003e0 &&& 0xffffffe0 : set_reciprocal(8658183, 34666587, 0x1f, 19); \
    0x00000400 &&& 0xffffffc0 : set_reciprocal(16769738, 63191212, 0x3f, 20); \
    0x00000440 &&& 0xffffffc0 : set_reciprocal(15784065, 56169879, 0x3f, 20); \
    0x00000480 &&& 0xffffffc0 : set_reciprocal(14907795, 50257060, 0x3f, 20); \
    0x000004c0 &&& 0xffffffc0 : set_reciprocal(14123675, 45231097, 0x3f, 20); \
    0x00000500 &&& 0xffffffc0 : set_reciprocal(13417899, 40923094, 0x3f, 20); \
    0x00000540 &&& 0xffffffc0 : set_reciprocal(12779287, 37202530, 0x3f, 20); \
    0x00000580 &&& 0xffffffc0 : set_reciprocal(12198689, 33967253, 0x3f, 20); \
    0x000005c0 &&& 0xffffffc0 : set_reciprocal(11668544, 31136389, 0x3f, 20); \
    0x00000600 &&& 0xffffffc0 : set_reciprocal(11182551, 28645235, 0x3f, 20); \
    0x00000640 &&& 0xffffffc0 : set_reciprocal(10735416, 26441530, 0x3f, 20); \
    0x00000680 &&& 0xffffffc0 : set_reciprocal(10322658, 24482691, 0x3f, 20); \
    0x000006c0 &&& 0xffffffc0 : set_reciprocal(9940460, 22733738, 0x3f, 20); \
    0x00000700 &&& 0xffffffc0 : set_reciprocal(9585550, 21165721, 0x3f, 20); \
    0x00000740 &&& 0xffffffc0 : set_reciprocal(9255106, 19754514, 0x3f, 20); \
    0x00000780 &&& 0xffffffc0 : set_reciprocal(8946683, 18479885, 0x3f, 20); \
    0x000007c0 &&& 0xffffffc0 : set_reciprocal(8658150, 17324760, 0x3f, 20); \
    0x00000800 &&& 0xffffff80 : set_reciprocal(16769622, 31580861, 0x7f, 21); \
    0x00000880 &&& 0xffffff80 : set_reciprocal(15783968, 28072572, 0x7f, 21); \
    0x00000900 &&& 0xffffff80 : set_reciprocal(14907713, 25118055, 0x7f, 21); \
    0x00000980 &&& 0xffffff80 : set_reciprocal(14123605, 22606599, 0x7f, 21); \
    0x00000a00 &&& 0xffffff80 : set_reciprocal(13417839, 20453840, 0x7f, 21); \
    0x00000a80 &&& 0xffffff80 : set_reciprocal(12779235, 18594581, 0x7f, 21); \
    0x00000b00 &&& 0xffffff80 : set_reciprocal(12198643, 16977792, 0x7f, 21); \
    0x00000b80 &&& 0xffffff80 : set_reciprocal(11668504, 15563072, 0x7f, 21); \
    0x00000c00 &&& 0xffffff80 : set_reciprocal(11182516, 14318095, 0x7f, 21); \
    0x00000c80 &&& 0xffffff80 : set_reciprocal(10735385, 13216753, 0x7f, 21); \
    0x00000d00 &&& 0xffffff80 : set_reciprocal(10322630, 12237770, 0x7f, 21); \
    0x00000d80 &&& 0xffffff80 : set_reciprocal(9940435, 11363668, 0x7f, 21); \
    0x00000e00 &&& 0xffffff80 : set_reciprocal(9585527, 10579984, 0x7f, 21); \
    0x00000e80 &&& 0xffffff80 : set_reciprocal(9255085, 9874663, 0x7f, 21); \
    0x00000f00 &&& 0xffffff80 : set_reciprocal(8946664, 9237594, 0x7f, 21); \
    0x00000f80 &&& 0xffffff80 : set_reciprocal(8658134, 8660248, 0x7f, 21); \
    0x00001000 &&& 0xffffff00 : set_reciprocal(16769564, 15786747, 0xff, 22); \
    0x00001100 &&& 0xffffff00 : set_reciprocal(15783920, 14033196, 0xff, 22); \
    0x00001200 &&& 0xffffff00 : set_reciprocal(14907672, 12556410, 0xff, 22); \
    0x00001300 &&& 0xffffff00 : set_reciprocal(14123570, 11301063, 0xff, 22); \
    0x00001400 &&& 0xffffff00 : set_reciprocal(13417809, 10224994, 0xff, 22); \
    0x00001500 &&& 0xffffff00 : set_reciprocal(12779209, 9295620, 0xff, 22); \
    0x00001600 &&& 0xffffff00 : set_reciprocal(12198620, 8487438, 0xff, 22); \
    0x00001700 &&& 0xffffff00 : set_reciprocal(11668484, 7780256, 0xff, 22); \
    0x00001800 &&& 0xffffff00 : set_reciprocal(11182498, 7157917, 0xff, 22); \
    0x00001900 &&& 0xffffff00 : set_reciprocal(10735369, 6607374, 0xff, 22); \
    0x00001a00 &&& 0xffffff00 : set_reciprocal(10322616, 6117991, 0xff, 22); \
    0x00001b00 &&& 0xffffff00 : set_reciprocal(9940423, 5681034, 0xff, 22); \
    0x00001c00 &&& 0xffffff00 : set_reciprocal(9585516, 5289273, 0xff, 22); \
    0x00001d00 &&& 0xffffff00 : set_reciprocal(9255075, 4936683, 0xff, 22); \
    0x00001e00 &&& 0xffffff00 : set_reciprocal(8946655, 4618210, 0xff, 22); \
    0x00001f00 &&& 0xffffff00 : set_reciprocal(8658126, 4329591, 0xff, 22); \
    0x00002000 &&& 0xfffffe00 : set_reciprocal(16769535, 7892453, 0x1ff, 23); \
    0x00002200 &&& 0xfffffe00 : set_reciprocal(15783895, 7015826, 0x1ff, 23); \
    0x00002400 &&& 0xfffffe00 : set_reciprocal(14907651, 6277551, 0x1ff, 23); \
    0x00002600 &&& 0xfffffe00 : set_reciprocal(14123552, 5649973, 0x1ff, 23); \
    0x00002800 &&& 0xfffffe00 : set_reciprocal(13417793, 5112016, 0x1ff, 23); \
    0x00002a00 &&& 0xfffffe00 : set_reciprocal(12779195, 4647393, 0x1ff, 23); \
    0x00002c00 &&& 0xfffffe00 : set_reciprocal(12198609, 4243355, 0x1ff, 23); \
    0x00002e00 &&& 0xfffffe00 : set_reciprocal(11668474, 3889808, 0x1ff, 23); \
    0x00003000 &&& 0xfffffe00 : set_reciprocal(11182489, 3578676, 0x1ff, 23); \
    0x00003200 &&& 0xfffffe00 : set_reciprocal(10735361, 3303436, 0x1ff, 23); \
    0x00003400 &&& 0xfffffe00 : set_reciprocal(10322609, 3058772, 0x1ff, 23); \
    0x00003600 &&& 0xfffffe00 : set_reciprocal(9940416, 2840317, 0x1ff, 23); \
    0x00003800 &&& 0xfffffe00 : set_reciprocal(9585510, 2644457, 0x1ff, 23); \
    0x00003a00 &&& 0xfffffe00 : set_reciprocal(9255070, 2468179, 0x1ff, 23); \
    0x00003c00 &&& 0xfffffe00 : set_reciprocal(8946650, 2308959, 0x1ff, 23); \
    0x00003e00 &&& 0xfffffe00 : set_reciprocal(8658121, 2164662, 0x1ff, 23); \
    0x00004000 &&& 0xfffffc00 : set_reciprocal(16769520, 3945996, 0x3ff, 24); \
    0x00004400 &&& 0xfffffc00 : set_reciprocal(15783883, 3507720, 0x3ff, 24); \
    0x00004800 &&& 0xfffffc00 : set_reciprocal(14907641, 3138612, 0x3ff, 24); \
    0x00004c00 &&& 0xfffffc00 : set_reciprocal(14123543, 2824847, 0x3ff, 24); \
    0x00005000 &&& 0xfffffc00 : set_reciprocal(13417786, 2555888, 0x3ff, 24); \
    0x00005400 &&& 0xfffffc00 : set_reciprocal(12779189, 2323592, 0x3ff, 24); \
    0x00005800 &&& 0xfffffc00 : set_reciprocal(12198603, 2121586, 0x3ff, 24); \
    0x00005c00 &&& 0xfffffc00 : set_reciprocal(11668469, 1944824, 0x3ff, 24); \
    0x00006000 &&& 0xfffffc00 : set_reciprocal(11182485, 1789267, 0x3ff, 24); \
    0x00006400 &&& 0xfffffc00 : set_reciprocal(10735357, 1651655, 0x3ff, 24); \
    0x00006800 &&& 0xfffffc00 : set_reciprocal(10322606, 1529330, 0x3ff, 24); \
    0x00006c00 &&& 0xfffffc00 : set_reciprocal(9940413, 1420109, 0x3ff, 24); \
    0x00007000 &&& 0xfffffc00 : set_reciprocal(9585508, 1322183, 0x3ff, 24); \
    0x00007400 &&& 0xfffffc00 : set_reciprocal(9255068, 1234049, 0x3ff, 24); \
    0x00007800 &&& 0xfffffc00 : set_reciprocal(8946648, 1154443, 0x3ff, 24); \
    0x00007c00 &&& 0xfffffc00 : set_reciprocal(8658119, 1082298, 0x3ff, 24); \
    0x00008000 &&& 0xfffff800 : set_reciprocal(16769513, 1972941, 0x7ff, 25); \
    0x00008800 &&& 0xfffff800 : set_reciprocal(15783877, 1753812, 0x7ff, 25); \
    0x00009000 &&& 0xfffff800 : set_reciprocal(14907635, 1569265, 0x7ff, 25); \
    0x00009800 &&& 0xfffff800 : set_reciprocal(14123539, 1412388, 0x7ff, 25); \
    0x0000a000 &&& 0xfffff800 : set_reciprocal(13417782, 1277914, 0x7ff, 25); \
    0x0000a800 &&& 0xfffff800 : set_reciprocal(12779186, 1161770, 0x7ff, 25); \
    0x0000b000 &&& 0xfffff800 : set_reciprocal(12198600, 1060770, 0x7ff, 25); \
    0x0000b800 &&& 0xfffff800 : set_reciprocal(11668466, 972392, 0x7ff, 25); \
    0x0000c000 &&& 0xfffff800 : set_reciprocal(11182483, 894616, 0x7ff, 25); \
    0x0000c800 &&& 0xfffff800 : set_reciprocal(10735355, 825812, 0x7ff, 25); \
    0x0000d000 &&& 0xfffff800 : set_reciprocal(10322604, 764651, 0x7ff, 25); \
    0x0000d800 &&& 0xfffff800 : set_reciprocal(9940412, 710042, 0x7ff, 25); \
    0x0000e000 &&& 0xfffff800 : set_reciprocal(9585506, 661081, 0x7ff, 25); \
    0x0000e800 &&& 0xfffff800 : set_reciprocal(9255066, 617014, 0x7ff, 25); \
    0x0000f000 &&& 0xfffff800 : set_reciprocal(8946647, 577212, 0x7ff, 25); \
    0x0000f800 &&& 0xfffff800 : set_reciprocal(8658118, 541141, 0x7ff, 25); \
    0x00010000 &&& 0xfffff000 : set_reciprocal(16769510, 986456, 0xfff, 26); \
    0x00011000 &&& 0xfffff000 : set_reciprocal(15783874, 876894, 0xfff, 26); \
    0x00012000 &&& 0xfffff000 : set_reciprocal(14907633, 784622, 0xfff, 26); \
    0x00013000 &&& 0xfffff000 : set_reciprocal(14123537, 706185, 0xfff, 26); \
    0x00014000 &&& 0xfffff000 : set_reciprocal(13417780, 638949, 0xfff, 26); \
    0x00015000 &&& 0xfffff000 : set_reciprocal(12779184, 580878, 0xfff, 26); \
    0x00016000 &&& 0xfffff000 : set_reciprocal(12198599, 530379, 0xfff, 26); \
    0x00017000 &&& 0xfffff000 : set_reciprocal(11668465, 486191, 0xfff, 26); \
    0x00018000 &&& 0xfffff000 : set_reciprocal(11182482, 447304, 0xfff, 26); \
    0x00019000 &&& 0xfffff000 : set_reciprocal(10735354, 412902, 0xfff, 26); \
    0x0001a000 &&& 0xfffff000 : set_reciprocal(10322603, 382322, 0xfff, 26); \
    0x0001b000 &&& 0xfffff000 : set_reciprocal(9940411, 355018, 0xfff, 26); \
    0x0001c000 &&& 0xfffff000 : set_reciprocal(9585505, 330537, 0xfff, 26); \
    0x0001d000 &&& 0xfffff000 : set_reciprocal(9255066, 308505, 0xfff, 26); \
    0x0001e000 &&& 0xfffff000 : set_reciprocal(8946646, 288604, 0xfff, 26); \
    0x0001f000 &&& 0xfffff000 : set_reciprocal(8658118, 270568, 0xfff, 26); \
    0x00020000 &&& 0xffffe000 : set_reciprocal(16769508, 493224, 0x1fff, 27); \
    0x00022000 &&& 0xffffe000 : set_reciprocal(15783872, 438444, 0x1fff, 27); \
    0x00024000 &&& 0xffffe000 : set_reciprocal(14907631, 392309, 0x1fff, 27); \
    0x00026000 &&& 0xffffe000 : set_reciprocal(14123536, 353091, 0x1fff, 27); \
    0x00028000 &&& 0xffffe000 : set_reciprocal(13417779, 319473, 0x1fff, 27); \
    0x0002a000 &&& 0xffffe000 : set_reciprocal(12779183, 290438, 0x1fff, 27); \
    0x0002c000 &&& 0xffffe000 : set_reciprocal(12198598, 265188, 0x1fff, 27); \
    0x0002e000 &&& 0xffffe000 : set_reciprocal(11668465, 243094, 0x1fff, 27); \
    0x00030000 &&& 0xffffe000 : set_reciprocal(11182481, 223651, 0x1fff, 27); \
    0x00032000 &&& 0xffffe000 : set_reciprocal(10735354, 206450, 0x1fff, 27); \
    0x00034000 &&& 0xffffe000 : set_reciprocal(10322603, 191160, 0x1fff, 27); \
    0x00036000 &&& 0xffffe000 : set_reciprocal(9940410, 177508, 0x1fff, 27); \
    0x00038000 &&& 0xffffe000 : set_reciprocal(9585505, 165268, 0x1fff, 27); \
    0x0003a000 &&& 0xffffe000 : set_reciprocal(9255065, 154252, 0x1fff, 27); \
    0x0003c000 &&& 0xffffe000 : set_reciprocal(8946646, 144301, 0x1fff, 27); \
    0x0003e000 &&& 0xffffe000 : set_reciprocal(8658117, 135284, 0x1fff, 27); \
    0x00040000 &&& 0xffffc000 : set_reciprocal(16769507, 246611, 0x3fff, 28); \
    0x00044000 &&& 0xffffc000 : set_reciprocal(15783871, 219221, 0x3fff, 28); \
    0x00048000 &&& 0xffffc000 : set_reciprocal(14907631, 196154, 0x3fff, 28); \
    0x0004c000 &&& 0xffffc000 : set_reciprocal(14123535, 176545, 0x3fff, 28); \
    0x00050000 &&& 0xffffc000 : set_reciprocal(13417779, 159736, 0x3fff, 28); \
    0x00054000 &&& 0xffffc000 : set_reciprocal(12779183, 145218, 0x3fff, 28); \
    0x00058000 &&& 0xffffc000 : set_reciprocal(12198598, 132594, 0x3fff, 28); \
    0x0005c000 &&& 0xffffc000 : set_reciprocal(11668464, 121547, 0x3fff, 28); \
    0x00060000 &&& 0xffffc000 : set_reciprocal(11182481, 111825, 0x3fff, 28); \
    0x00064000 &&& 0xffffc000 : set_reciprocal(10735354, 103225, 0x3fff, 28); \
    0x00068000 &&& 0xffffc000 : set_reciprocal(10322602, 95580, 0x3fff, 28); \
    0x0006c000 &&& 0xffffc000 : set_reciprocal(9940410, 88754, 0x3fff, 28); \
    0x00070000 &&& 0xffffc000 : set_reciprocal(9585505, 82634, 0x3fff, 28); \
    0x00074000 &&& 0xffffc000 : set_reciprocal(9255065, 77126, 0x3fff, 28); \
    0x00078000 &&& 0xffffc000 : set_reciprocal(8946646, 72151, 0x3fff, 28); \
    0x0007c000 &&& 0xffffc000 : set_reciprocal(8658117, 67642, 0x3fff, 28); \
    0x00080000 &&& 0xffff8000 : set_reciprocal(16769506, 123305, 0x7fff, 29); \
    0x00088000 &&& 0xffff8000 : set_reciprocal(15783871, 109610, 0x7fff, 29); \
    0x00090000 &&& 0xffff8000 : set_reciprocal(14907631, 98077, 0x7fff, 29); \
    0x00098000 &&& 0xffff8000 : set_reciprocal(14123535, 88272, 0x7fff, 29); \
    0x000a0000 &&& 0xffff8000 : set_reciprocal(13417778, 79868, 0x7fff, 29); \
    0x000a8000 &&& 0xffff8000 : set_reciprocal(12779182, 72609, 0x7fff, 29); \
    0x000b0000 &&& 0xffff8000 : set_reciprocal(12198598, 66297, 0x7fff, 29); \
    0x000b8000 &&& 0xffff8000 : set_reciprocal(11668464, 60773, 0x7fff, 29); \
    0x000c0000 &&& 0xffff8000 : set_reciprocal(11182481, 55912, 0x7fff, 29); \
    0x000c8000 &&& 0xffff8000 : set_reciprocal(10735353, 51612, 0x7fff, 29); \
    0x000d0000 &&& 0xffff8000 : set_reciprocal(10322602, 47790, 0x7fff, 29); \
    0x000d8000 &&& 0xffff8000 : set_reciprocal(9940410, 44377, 0x7fff, 29); \
    0x000e0000 &&& 0xffff8000 : set_reciprocal(9585505, 41317, 0x7fff, 29); \
    0x000e8000 &&& 0xffff8000 : set_reciprocal(9255065, 38563, 0x7fff, 29); \
    0x000f0000 &&& 0xffff8000 : set_reciprocal(8946646, 36075, 0x7fff, 29); \
    0x000f8000 &&& 0xffff8000 : set_reciprocal(8658117, 33821, 0x7fff, 29); \
    0x00100000 &&& 0xffff0000 : set_reciprocal(16769506, 61653, 0xffff, 30); \
    0x00110000 &&& 0xffff0000 : set_reciprocal(15783871, 54805, 0xffff, 30); \
    0x00120000 &&& 0xffff0000 : set_reciprocal(14907630, 49038, 0xffff, 30); \
    0x00130000 &&& 0xffff0000 : set_reciprocal(14123535, 44136, 0xffff, 30); \
    0x00140000 &&& 0xffff0000 : set_reciprocal(13417778, 39934, 0xffff, 30); \
    0x00150000 &&& 0xffff0000 : set_reciprocal(12779182, 36305, 0xffff, 30); \
    0x00160000 &&& 0xffff0000 : set_reciprocal(12198597, 33148, 0xffff, 30); \
    0x00170000 &&& 0xffff0000 : set_reciprocal(11668464, 30387, 0xffff, 30); \
    0x00180000 &&& 0xffff0000 : set_reciprocal(11182481, 27956, 0xffff, 30); \
    0x00190000 &&& 0xffff0000 : set_reciprocal(10735353, 25806, 0xffff, 30); \
    0x001a0000 &&& 0xffff0000 : set_reciprocal(10322602, 23895, 0xffff, 30); \
    0x001b0000 &&& 0xffff0000 : set_reciprocal(9940410, 22188, 0xffff, 30); \
    0x001c0000 &&& 0xffff0000 : set_reciprocal(9585505, 20658, 0xffff, 30); \
    0x001d0000 &&& 0xffff0000 : set_reciprocal(9255065, 19281, 0xffff, 30); \
    0x001e0000 &&& 0xffff0000 : set_reciprocal(8946646, 18038, 0xffff, 30); \
    0x001f0000 &&& 0xffff0000 : set_reciprocal(8658117, 16910, 0xffff, 30); \
    0x00200000 &&& 0xfffe0000 : set_reciprocal(16769506, 30826, 0x1ffff, 31); \
    0x00220000 &&& 0xfffe0000 : set_reciprocal(15783871, 27403, 0x1ffff, 31); \
    0x00240000 &&& 0xfffe0000 : set_reciprocal(14907630, 24519, 0x1ffff, 31); \
    0x00260000 &&& 0xfffe0000 : set_reciprocal(14123535, 22068, 0x1ffff, 31); \
    0x00280000 &&& 0xfffe0000 : set_reciprocal(13417778, 19967, 0x1ffff, 31); \
    0x002a0000 &&& 0xfffe0000 : set_reciprocal(12779182, 18152, 0x1ffff, 31); \
    0x002c0000 &&& 0xfffe0000 : set_reciprocal(12198597, 16574, 0x1ffff, 31); \
    0x002e0000 &&& 0xfffe0000 : set_reciprocal(11668464, 15193, 0x1ffff, 31); \
    0x00300000 &&& 0xfffe0000 : set_reciprocal(11182481, 13978, 0x1ffff, 31); \
    0x00320000 &&& 0xfffe0000 : set_reciprocal(10735353, 12903, 0x1ffff, 31); \
    0x00340000 &&& 0xfffe0000 : set_reciprocal(10322602, 11947, 0x1ffff, 31); \
    0x00360000 &&& 0xfffe0000 : set_reciprocal(9940410, 11094, 0x1ffff, 31); \
    0x00380000 &&& 0xfffe0000 : set_reciprocal(9585505, 10329, 0x1ffff, 31); \
    0x003a0000 &&& 0xfffe0000 : set_reciprocal(9255065, 9641, 0x1ffff, 31); \
    0x003c0000 &&& 0xfffe0000 : set_reciprocal(8946646, 9019, 0x1ffff, 31); \
    0x003e0000 &&& 0xfffe0000 : set_reciprocal(8658117, 8455, 0x1ffff, 31); \
    0x00400000 &&& 0xfffc0000 : set_reciprocal(16769506, 15413, 0x3ffff, 32); \
    0x00440000 &&& 0xfffc0000 : set_reciprocal(15783871, 13701, 0x3ffff, 32); \
    0x00480000 &&& 0xfffc0000 : set_reciprocal(14907630, 12260, 0x3ffff, 32); \
    0x004c0000 &&& 0xfffc0000 : set_reciprocal(14123535, 11034, 0x3ffff, 32); \
    0x00500000 &&& 0xfffc0000 : set_reciprocal(13417778, 9983, 0x3ffff, 32); \
    0x00540000 &&& 0xfffc0000 : set_reciprocal(12779182, 9076, 0x3ffff, 32); \
    0x00580000 &&& 0xfffc0000 : set_reciprocal(12198597, 8287, 0x3ffff, 32); \
    0x005c0000 &&& 0xfffc0000 : set_reciprocal(11668464, 7597, 0x3ffff, 32); \
    0x00600000 &&& 0xfffc0000 : set_reciprocal(11182481, 6989, 0x3ffff, 32); \
    0x00640000 &&& 0xfffc0000 : set_reciprocal(10735353, 6452, 0x3ffff, 32); \
    0x00680000 &&& 0xfffc0000 : set_reciprocal(10322602, 5974, 0x3ffff, 32); \
    0x006c0000 &&& 0xfffc0000 : set_reciprocal(9940410, 5547, 0x3ffff, 32); \
    0x00700000 &&& 0xfffc0000 : set_reciprocal(9585505, 5165, 0x3ffff, 32); \
    0x00740000 &&& 0xfffc0000 : set_reciprocal(9255065, 4820, 0x3ffff, 32); \
    0x00780000 &&& 0xfffc0000 : set_reciprocal(8946646, 4509, 0x3ffff, 32); \
    0x007c0000 &&& 0xfffc0000 : set_reciprocal(8658117, 4228, 0x3ffff, 32); \
    0x00800000 &&& 0xfff80000 : set_reciprocal(16769506, 7707, 0x7ffff, 33); \
    0x00880000 &&& 0xfff80000 : set_reciprocal(15783871, 6851, 0x7ffff, 33); \
    0x00900000 &&& 0xfff80000 : set_reciprocal(14907630, 6130, 0x7ffff, 33); \
    0x00980000 &&& 0xfff80000 : set_reciprocal(14123534, 5517, 0x7ffff, 33); \
    0x00a00000 &&& 0xfff80000 : set_reciprocal(13417778, 4992, 0x7ffff, 33); \
    0x00a80000 &&& 0xfff80000 : set_reciprocal(12779182, 4538, 0x7ffff, 33); \
    0x00b00000 &&& 0xfff80000 : set_reciprocal(12198597, 4144, 0x7ffff, 33); \
    0x00b80000 &&& 0xfff80000 : set_reciprocal(11668464, 3798, 0x7ffff, 33); \
    0x00c00000 &&& 0xfff80000 : set_reciprocal(11182481, 3495, 0x7ffff, 33); \
    0x00c80000 &&& 0xfff80000 : set_reciprocal(10735353, 3226, 0x7ffff, 33); \
    0x00d00000 &&& 0xfff80000 : set_reciprocal(10322602, 2987, 0x7ffff, 33); \
    0x00d80000 &&& 0xfff80000 : set_reciprocal(9940410, 2774, 0x7ffff, 33); \
    0x00e00000 &&& 0xfff80000 : set_reciprocal(9585505, 2582, 0x7ffff, 33); \
    0x00e80000 &&& 0xfff80000 : set_reciprocal(9255065, 2410, 0x7ffff, 33); \
    0x00f00000 &&& 0xfff80000 : set_reciprocal(8946646, 2255, 0x7ffff, 33); \
    0x00f80000 &&& 0xfff80000 : set_reciprocal(8658117, 2114, 0x7ffff, 33); \
    0x01000000 &&& 0xfff00000 : set_reciprocal(16769506, 3853, 0xfffff, 34); \
    0x01100000 &&& 0xfff00000 : set_reciprocal(15783871, 3425, 0xfffff, 34); \
    0x01200000 &&& 0xfff00000 : set_reciprocal(14907630, 3065, 0xfffff, 34); \
    0x01300000 &&& 0xfff00000 : set_reciprocal(14123534, 2759, 0xfffff, 34); \
    0x01400000 &&& 0xfff00000 : set_reciprocal(13417778, 2496, 0xfffff, 34); \
    0x01500000 &&& 0xfff00000 : set_reciprocal(12779182, 2269, 0xfffff, 34); \
    0x01600000 &&& 0xfff00000 : set_reciprocal(12198597, 2072, 0xfffff, 34); \
    0x01700000 &&& 0xfff00000 : set_reciprocal(11668464, 1899, 0xfffff, 34); \
    0x01800000 &&& 0xfff00000 : set_reciprocal(11182481, 1747, 0xfffff, 34); \
    0x01900000 &&& 0xfff00000 : set_reciprocal(10735353, 1613, 0xfffff, 34); \
    0x01a00000 &&& 0xfff00000 : set_reciprocal(10322602, 1493, 0xfffff, 34); \
    0x01b00000 &&& 0xfff00000 : set_reciprocal(9940410, 1387, 0xfffff, 34); \
    0x01c00000 &&& 0xfff00000 : set_reciprocal(9585505, 1291, 0xfffff, 34); \
    0x01d00000 &&& 0xfff00000 : set_reciprocal(9255065, 1205, 0xfffff, 34); \
    0x01e00000 &&& 0xfff00000 : set_reciprocal(8946646, 1127, 0xfffff, 34); \
    0x01f00000 &&& 0xfff00000 : set_reciprocal(8658117, 1057, 0xfffff, 34); \
    0x02000000 &&& 0xffe00000 : set_reciprocal(16769506, 1927, 0x1fffff, 35); \
    0x02200000 &&& 0xffe00000 : set_reciprocal(15783871, 1713, 0x1fffff, 35); \
    0x02400000 &&& 0xffe00000 : set_reciprocal(14907630, 1532, 0x1fffff, 35); \
    0x02600000 &&& 0xffe00000 : set_reciprocal(14123534, 1379, 0x1fffff, 35); \
    0x02800000 &&& 0xffe00000 : set_reciprocal(13417778, 1248, 0x1fffff, 35); \
    0x02a00000 &&& 0xffe00000 : set_reciprocal(12779182, 1135, 0x1fffff, 35); \
    0x02c00000 &&& 0xffe00000 : set_reciprocal(12198597, 1036, 0x1fffff, 35); \
    0x02e00000 &&& 0xffe00000 : set_reciprocal(11668464, 950, 0x1fffff, 35); \
    0x03000000 &&& 0xffe00000 : set_reciprocal(11182480, 874, 0x1fffff, 35); \
    0x03200000 &&& 0xffe00000 : set_reciprocal(10735353, 806, 0x1fffff, 35); \
    0x03400000 &&& 0xffe00000 : set_reciprocal(10322602, 747, 0x1fffff, 35); \
    0x03600000 &&& 0xffe00000 : set_reciprocal(9940410, 693, 0x1fffff, 35); \
    0x03800000 &&& 0xffe00000 : set_reciprocal(9585505, 646, 0x1fffff, 35); \
    0x03a00000 &&& 0xffe00000 : set_reciprocal(9255065, 603, 0x1fffff, 35); \
    0x03c00000 &&& 0xffe00000 : set_reciprocal(8946646, 564, 0x1fffff, 35); \
    0x03e00000 &&& 0xffe00000 : set_reciprocal(8658117, 528, 0x1fffff, 35); \
    0x04000000 &&& 0xffc00000 : set_reciprocal(16769506, 963, 0x3fffff, 36); \
    0x04400000 &&& 0xffc00000 : set_reciprocal(15783871, 856, 0x3fffff, 36); \
    0x04800000 &&& 0xffc00000 : set_reciprocal(14907630, 766, 0x3fffff, 36); \
    0x04c00000 &&& 0xffc00000 : set_reciprocal(14123534, 690, 0x3fffff, 36); \
    0x05000000 &&& 0xffc00000 : set_reciprocal(13417778, 624, 0x3fffff, 36); \
    0x05400000 &&& 0xffc00000 : set_reciprocal(12779182, 567, 0x3fffff, 36); \
    0x05800000 &&& 0xffc00000 : set_reciprocal(12198597, 518, 0x3fffff, 36); \
    0x05c00000 &&& 0xffc00000 : set_reciprocal(11668464, 475, 0x3fffff, 36); \
    0x06000000 &&& 0xffc00000 : set_reciprocal(11182480, 437, 0x3fffff, 36); \
    0x06400000 &&& 0xffc00000 : set_reciprocal(10735353, 403, 0x3fffff, 36); \
    0x06800000 &&& 0xffc00000 : set_reciprocal(10322602, 373, 0x3fffff, 36); \
    0x06c00000 &&& 0xffc00000 : set_reciprocal(9940410, 347, 0x3fffff, 36); \
    0x07000000 &&& 0xffc00000 : set_reciprocal(9585505, 323, 0x3fffff, 36); \
    0x07400000 &&& 0xffc00000 : set_reciprocal(9255065, 301, 0x3fffff, 36); \
    0x07800000 &&& 0xffc00000 : set_reciprocal(8946646, 282, 0x3fffff, 36); \
    0x07c00000 &&& 0xffc00000 : set_reciprocal(8658117, 264, 0x3fffff, 36);

#endif
