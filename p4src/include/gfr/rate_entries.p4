// SPDX-License-Identifier: Apache-2.0
// Entries of the tables of eq. (2), written by p4src/rate_table.py; do not edit.
#ifndef FAIRLANE_GFR_RATE_ENTRIES_P4
#define FAIRLANE_GFR_RATE_ENTRIES_P4

// The first piece of h, of a busy VC, needs no table.
#define RATE_H_FIRST_US 32768
#define RATE_H_FIRST_START 2251599976
#define RATE_H_FIRST_SLOPE 2310233032

#define RATE_H_ENTRIES \
    0x00008000 &&& 0xffff8000 : set_h(2179408422, 2212002323, 0x7fff); \
    0x00010000 &&& 0xffff8000 : set_h(2110286459, 2118460299, 0x7fff); \
    0x00018000 &&& 0xffff8000 : set_h(2044087570, 2029368503, 0x7fff); \
    0x00020000 &&& 0xffff8000 : set_h(1980672689, 1944501100, 0x7fff); \
    0x00028000 &&& 0xffff8000 : set_h(1919909807, 1863644195, 0x7fff); \
    0x00030000 &&& 0xffff8000 : set_h(1861673601, 1786595181, 0x7fff); \
    0x00038000 &&& 0xffff8000 : set_h(1805845077, 1713162127, 0x7fff); \
    0x00040000 &&& 0xffff8000 : set_h(1752311240, 1643163197, 0x7fff); \
    0x00048000 &&& 0xffff8000 : set_h(1700964777, 1576426108, 0x7fff); \
    0x00050000 &&& 0xffff8000 : set_h(1651703759, 1512787606, 0x7fff); \
    0x00058000 &&& 0xffff8000 : set_h(1604431357, 1452092986, 0x7fff); \
    0x00060000 &&& 0xffff8000 : set_h(1559055580, 1394195623, 0x7fff); \
    0x00068000 &&& 0xffff8000 : set_h(1515489015, 1338956542, 0x7fff); \
    0x00070000 &&& 0xffff8000 : set_h(1473648594, 1286244003, 0x7fff); \
    0x00078000 &&& 0xffff8000 : set_h(1433455366, 1235933115, 0x7fff); \
    0x00080000 &&& 0xffff8000 : set_h(1394834280, 1187905466, 0x7fff); \
    0x00088000 &&& 0xffff8000 : set_h(1357713990, 1142048774, 0x7fff); \
    0x00090000 &&& 0xffff8000 : set_h(1322026655, 1098256564, 0x7fff); \
    0x00098000 &&& 0xffff8000 : set_h(1287707762, 1056427853, 0x7fff); \
    0x000a0000 &&& 0xffff8000 : set_h(1254695954, 1016466857, 0x7fff); \
    0x000a8000 &&& 0xffff8000 : set_h(1222932868, 978282718, 0x7fff); \
    0x000b0000 &&& 0xffff8000 : set_h(1192362978, 941789236, 0x7fff); \
    0x000b8000 &&& 0xffff8000 : set_h(1162933455, 906904625, 0x7fff); \
    0x000c0000 &&& 0xffff8000 : set_h(1134594022, 873551278, 0x7fff); \
    0x000c8000 &&& 0xffff8000 : set_h(1107296830, 841655545, 0x7fff); \
    0x000d0000 &&& 0xffff8000 : set_h(1080996330, 811147524, 0x7fff); \
    0x000d8000 &&& 0xffff8000 : set_h(1055649158, 781960862, 0x7fff); \
    0x000e0000 &&& 0xffff8000 : set_h(1031214024, 754032568, 0x7fff); \
    0x000e8000 &&& 0xffff8000 : set_h(1007651605, 727302838, 0x7fff); \
    0x000f0000 &&& 0xffff8000 : set_h(984924447, 701714885, 0x7fff); \
    0x000f8000 &&& 0xffff8000 : set_h(962996872, 677214779, 0x7fff); \
    0x00100000 &&& 0xffff8000 : set_h(941834886, 653751302, 0x7fff); \
    0x00108000 &&& 0xffff8000 : set_h(921406096, 631275803, 0x7fff); \
    0x00110000 &&& 0xffff8000 : set_h(901679629, 609742062, 0x7fff); \
    0x00118000 &&& 0xffff8000 : set_h(882626057, 589106167, 0x7fff); \
    0x00120000 &&& 0xffff8000 : set_h(864217322, 569326393, 0x7fff); \
    0x00128000 &&& 0xffff8000 : set_h(846426673, 550363086, 0x7fff); \
    0x00130000 &&& 0xffff8000 : set_h(829228597, 532178556, 0x7fff); \
    0x00138000 &&& 0xffff8000 : set_h(812598757, 514736978, 0x7fff); \
    0x00140000 &&& 0xffff8000 : set_h(796513938, 498004292, 0x7fff); \
    0x00148000 &&& 0xffff8000 : set_h(780951987, 481948115, 0x7fff); \
    0x00150000 &&& 0xffff8000 : set_h(765891766, 466537652, 0x7fff); \
    0x00158000 &&& 0xffff8000 : set_h(751313096, 451743615, 0x7fff); \
    0x00160000 &&& 0xffff8000 : set_h(737196715, 437538146, 0x7fff); \
    0x00168000 &&& 0xffff8000 : set_h(723524232, 423894744, 0x7fff); \
    0x00170000 &&& 0xffff8000 : set_h(710278082, 410788195, 0x7fff); \
    0x00178000 &&& 0xffff8000 : set_h(697441490, 398194507, 0x7fff); \
    0x00180000 &&& 0xffff8000 : set_h(684998430, 386090846, 0x7fff); \
    0x00188000 &&& 0xffff8000 : set_h(672933590, 374455479, 0x7fff); \
    0x00190000 &&& 0xffff8000 : set_h(661232335, 363267717, 0x7fff); \
    0x00198000 &&& 0xffff8000 : set_h(649880680, 352507863, 0x7fff); \
    0x001a0000 &&& 0xffff8000 : set_h(638865252, 342157159, 0x7fff); \
    0x001a8000 &&& 0xffff8000 : set_h(628173267, 332197745, 0x7fff); \
    0x001b0000 &&& 0xffff8000 : set_h(617792497, 322612606, 0x7fff); \
    0x001b8000 &&& 0xffff8000 : set_h(607711247, 313385534, 0x7fff); \
    0x001c0000 &&& 0xffff8000 : set_h(597918327, 304501089, 0x7fff); \
    0x001c8000 &&& 0xffff8000 : set_h(588403032, 295944556, 0x7fff); \
    0x001d0000 &&& 0xffff8000 : set_h(579155115, 287701911, 0x7fff); \
    0x001d8000 &&& 0xffff8000 : set_h(570164768, 279759787, 0x7fff); \
    0x001e0000 &&& 0xffff8000 : set_h(561422598, 272105442, 0x7fff); \
    0x001e8000 &&& 0xffff8000 : set_h(552919615, 264726727, 0x7fff); \
    0x001f0000 &&& 0xffff0000 : set_h(544606540, 254162171, 0xffff); \
    0x00200000 &&& 0xffff0000 : set_h(528723607, 240920434, 0xffff); \
    0x00210000 &&& 0xffff0000 : set_h(513668120, 228589362, 0xffff); \
    0x00220000 &&& 0xffff0000 : set_h(499383175, 217095630, 0xffff); \
    0x00230000 &&& 0xffff0000 : set_h(485816450, 206372424, 0xffff); \
    0x00240000 &&& 0xffff0000 : set_h(472919798, 196358827, 0xffff); \
    0x00250000 &&& 0xffff0000 : set_h(460648878, 186999257, 0xffff); \
    0x00260000 &&& 0xffff0000 : set_h(448962823, 178242973, 0xffff); \
    0x00270000 &&& 0xffff0000 : set_h(437823935, 170043620, 0xffff); \
    0x00280000 &&& 0xffff0000 : set_h(427197415, 162358820, 0xffff); \
    0x00290000 &&& 0xffff0000 : set_h(417051109, 155149807, 0xffff); \
    0x002a0000 &&& 0xffff0000 : set_h(407355289, 148381095, 0xffff); \
    0x002b0000 &&& 0xffff0000 : set_h(398082440, 142020176, 0xffff); \
    0x002c0000 &&& 0xffff0000 : set_h(389207082, 136037253, 0xffff); \
    0x002d0000 &&& 0xffff0000 : set_h(380705595, 130404990, 0xffff); \
    0x002e0000 &&& 0xffff0000 : set_h(372556067, 125098297, 0xffff); \
    0x002f0000 &&& 0xffff0000 : set_h(364738154, 120094123, 0xffff); \
    0x00300000 &&& 0xffff0000 : set_h(357232953, 115371279, 0xffff); \
    0x00310000 &&& 0xffff0000 : set_h(350022885, 110910274, 0xffff); \
    0x00320000 &&& 0xffff0000 : set_h(343091588, 106693165, 0xffff); \
    0x00330000 &&& 0xffff0000 : set_h(336423822, 102703419, 0xffff); \
    0x00340000 &&& 0xffff0000 : set_h(330005379, 98925797, 0xffff); \
    0x00350000 &&& 0xffff0000 : set_h(323823004, 95346240, 0xffff); \
    0x00360000 &&& 0xffff0000 : set_h(317864320, 91951764, 0xffff); \
    0x00370000 &&& 0xffff0000 : set_h(312117763, 88730376, 0xffff); \
    0x00380000 &&& 0xffff0000 : set_h(306572516, 85670987, 0xffff); \
    0x00390000 &&& 0xffff0000 : set_h(301218455, 82763335, 0xffff); \
    0x003a0000 &&& 0xffff0000 : set_h(296046101, 79997918, 0xffff); \
    0x003b0000 &&& 0xffff0000 : set_h(291046563, 77365932, 0xffff); \
    0x003c0000 &&& 0xffff0000 : set_h(286211505, 74859210, 0xffff); \
    0x003d0000 &&& 0xffff0000 : set_h(281533099, 72470177, 0xffff); \
    0x003e0000 &&& 0xffff0000 : set_h(277003990, 70191796, 0xffff); \
    0x003f0000 &&& 0xffff0000 : set_h(272617263, 68017527, 0xffff); \
    0x00400000 &&& 0xffff0000 : set_h(268366414, 65941287, 0xffff); \
    0x00410000 &&& 0xffff0000 : set_h(264245316, 63957417, 0xffff); \
    0x00420000 &&& 0xffff0000 : set_h(260248197, 62060643, 0xffff); \
    0x00430000 &&& 0xffff0000 : set_h(256369613, 60246053, 0xffff); \
    0x00440000 &&& 0xffff0000 : set_h(252604431, 58509064, 0xffff); \
    0x00450000 &&& 0xffff0000 : set_h(248947799, 56845397, 0xffff); \
    0x00460000 &&& 0xfffe0000 : set_h(245377050, 54482649, 0x1ffff); \
    0x00480000 &&& 0xfffe0000 : set_h(238567973, 51548142, 0x1ffff); \
    0x004a0000 &&& 0xfffe0000 : set_h(232125583, 48842982, 0x1ffff); \
    0x004c0000 &&& 0xfffe0000 : set_h(226021228, 46344168, 0x1ffff); \
    0x004e0000 &&& 0xfffe0000 : set_h(220229126, 44031453, 0x1ffff); \
    0x00500000 &&& 0xfffe0000 : set_h(214726026, 41886974, 0x1ffff); \
    0x00520000 &&& 0xfffe0000 : set_h(209490910, 39894930, 0x1ffff); \
    0x00540000 &&& 0xfffe0000 : set_h(204504730, 38041305, 0x1ffff); \
    0x00560000 &&& 0xfffe0000 : set_h(199750193, 36313642, 0x1ffff); \
    0x00580000 &&& 0xfffe0000 : set_h(195211559, 34700836, 0x1ffff); \
    0x005a0000 &&& 0xfffe0000 : set_h(190874477, 33192973, 0x1ffff); \
    0x005c0000 &&& 0xfffe0000 : set_h(186725835, 31781172, 0x1ffff); \
    0x005e0000 &&& 0xfffe0000 : set_h(182753628, 30457471, 0x1ffff); \
    0x00600000 &&& 0xfffe0000 : set_h(178946849, 29214707, 0x1ffff); \
    0x00620000 &&& 0xfffe0000 : set_h(175295383, 28046429, 0x1ffff); \
    0x00640000 &&& 0xfffe0000 : set_h(171789923, 26946812, 0x1ffff); \
    0x00660000 &&& 0xfffe0000 : set_h(168421889, 25910588, 0x1ffff); \
    0x00680000 &&& 0xfffe0000 : set_h(165183360, 24932982, 0x1ffff); \
    0x006a0000 &&& 0xfffe0000 : set_h(162067010, 24009659, 0x1ffff); \
    0x006c0000 &&& 0xfffe0000 : set_h(159066055, 23136679, 0x1ffff); \
    0x006e0000 &&& 0xfffe0000 : set_h(156174205, 22310449, 0x1ffff); \
    0x00700000 &&& 0xfffe0000 : set_h(153385618, 21527692, 0x1ffff); \
    0x00720000 &&& 0xfffe0000 : set_h(150694860, 20785412, 0x1ffff); \
    0x00740000 &&& 0xfffe0000 : set_h(148096874, 20080868, 0x1ffff); \
    0x00760000 &&& 0xfffe0000 : set_h(145586943, 19411544, 0x1ffff); \
    0x00780000 &&& 0xfffe0000 : set_h(143160666, 18775133, 0x1ffff); \
    0x007a0000 &&& 0xfffe0000 : set_h(140813930, 18169513, 0x1ffff); \
    0x007c0000 &&& 0xfffe0000 : set_h(138542886, 17592728, 0x1ffff); \
    0x007e0000 &&& 0xfffe0000 : set_h(136343932, 17042977, 0x1ffff); \
    0x00800000 &&& 0xfffe0000 : set_h(134213688, 16518597, 0x1ffff); \
    0x00820000 &&& 0xfffe0000 : set_h(132148984, 16018051, 0x1ffff); \
    0x00840000 &&& 0xfffe0000 : set_h(130146841, 15539916, 0x1ffff); \
    0x00860000 &&& 0xfffe0000 : set_h(128204458, 15082874, 0x1ffff); \
    0x00880000 &&& 0xfffe0000 : set_h(126319200, 14645702, 0x1ffff); \
    0x008a0000 &&& 0xfffe0000 : set_h(124488582, 14227265, 0x1ffff); \
    0x008c0000 &&& 0xfffc0000 : set_h(122701176, 13633463, 0x3ffff); \
    0x00900000 &&& 0xfffc0000 : set_h(119293450, 12896589, 0x3ffff); \
    0x00940000 &&& 0xfffc0000 : set_h(116069877, 12217882, 0x3ffff); \
    0x00980000 &&& 0xfffc0000 : set_h(113015922, 11591377, 0x3ffff); \
    0x009c0000 &&& 0xfffc0000 : set_h(110118542, 11011855, 0x3ffff); \
    0x00a00000 &&& 0xfffc0000 : set_h(107365998, 10474732, 0x3ffff); \
    0x00a40000 &&& 0xfffc0000 : set_h(104747696, 9975972, 0x3ffff); \
    0x00a80000 &&& 0xfffc0000 : set_h(102254048, 9512005, 0x3ffff); \
    0x00ac0000 &&& 0xfffc0000 : set_h(99876361, 9079670, 0x3ffff); \
    0x00b00000 &&& 0xfffc0000 : set_h(97606731, 8676155, 0x3ffff); \
    0x00b40000 &&& 0xfffc0000 : set_h(95437954, 8298953, 0x3ffff); \
    0x00b80000 &&& 0xfffc0000 : set_h(93363456, 7945827, 0x3ffff); \
    0x00bc0000 &&& 0xfffc0000 : set_h(91377220, 7614769, 0x3ffff); \
    0x00c00000 &&& 0xfffc0000 : set_h(89473730, 7303979, 0x3ffff); \
    0x00c40000 &&& 0xfffc0000 : set_h(87647922, 7011834, 0x3ffff); \
    0x00c80000 &&& 0xfffc0000 : set_h(85895135, 6736874, 0x3ffff); \
    0x00cc0000 &&& 0xfffc0000 : set_h(84211076, 6477776, 0x3ffff); \
    0x00d00000 &&& 0xfffc0000 : set_h(82591779, 6233342, 0x3ffff); \
    0x00d40000 &&& 0xfffc0000 : set_h(81033579, 6002488, 0x3ffff); \
    0x00d80000 &&& 0xfffc0000 : set_h(79533084, 5784225, 0x3ffff); \
    0x00dc0000 &&& 0xfffc0000 : set_h(78087145, 5577654, 0x3ffff); \
    0x00e00000 &&& 0xfffc0000 : set_h(76692841, 5381954, 0x3ffff); \
    0x00e40000 &&& 0xfffc0000 : set_h(75347454, 5196377, 0x3ffff); \
    0x00e80000 &&& 0xfffc0000 : set_h(74048455, 5020235, 0x3ffff); \
    0x00ec0000 &&& 0xfffc0000 : set_h(72793485, 4852899, 0x3ffff); \
    0x00f00000 &&& 0xfffc0000 : set_h(71580344, 4693793, 0x3ffff); \
    0x00f40000 &&& 0xfffc0000 : set_h(70406973, 4542386, 0x3ffff); \
    0x00f80000 &&& 0xfffc0000 : set_h(69271449, 4398188, 0x3ffff); \
    0x00fc0000 &&& 0xfffc0000 : set_h(68171971, 4260748, 0x3ffff); \
    0x01000000 &&& 0xfffc0000 : set_h(67106848, 4129652, 0x3ffff); \
    0x01040000 &&& 0xfffc0000 : set_h(66074495, 4004515, 0x3ffff); \
    0x01080000 &&& 0xfffc0000 : set_h(65073423, 3884981, 0x3ffff); \
    0x010c0000 &&& 0xfffc0000 : set_h(64102231, 3770720, 0x3ffff); \
    0x01100000 &&& 0xfffc0000 : set_h(63159601, 3661426, 0x3ffff); \
    0x01140000 &&& 0xfffc0000 : set_h(62244292, 3556817, 0x3ffff); \
    0x01180000 &&& 0xfff80000 : set_h(61350589, 3408366, 0x7ffff); \
    0x01200000 &&& 0xfff80000 : set_h(59646726, 3224147, 0x7ffff); \
    0x01280000 &&& 0xfff80000 : set_h(58034939, 3054471, 0x7ffff); \
    0x01300000 &&& 0xfff80000 : set_h(56507961, 2897844, 0x7ffff); \
    0x01380000 &&& 0xfff80000 : set_h(55059271, 2752964, 0x7ffff); \
    0x01400000 &&& 0xfff80000 : set_h(53682999, 2618683, 0x7ffff); \
    0x01480000 &&& 0xfff80000 : set_h(52373848, 2493993, 0x7ffff); \
    0x01500000 &&& 0xfff80000 : set_h(51127024, 2378001, 0x7ffff); \
    0x01580000 &&& 0xfff80000 : set_h(49938181, 2269917, 0x7ffff); \
    0x01600000 &&& 0xfff80000 : set_h(48803365, 2169039, 0x7ffff); \
    0x01680000 &&& 0xfff80000 : set_h(47718977, 2074738, 0x7ffff); \
    0x01700000 &&& 0xfff80000 : set_h(46681728, 1986457, 0x7ffff); \
    0x01780000 &&& 0xfff80000 : set_h(45688610, 1903692, 0x7ffff); \
    0x01800000 &&& 0xfff80000 : set_h(44736865, 1825995, 0x7ffff); \
    0x01880000 &&& 0xfff80000 : set_h(43823961, 1752959, 0x7ffff); \
    0x01900000 &&& 0xfff80000 : set_h(42947568, 1684218, 0x7ffff); \
    0x01980000 &&& 0xfff80000 : set_h(42105538, 1619444, 0x7ffff); \
    0x01a00000 &&& 0xfff80000 : set_h(41295889, 1558336, 0x7ffff); \
    0x01a80000 &&& 0xfff80000 : set_h(40516790, 1500622, 0x7ffff); \
    0x01b00000 &&& 0xfff80000 : set_h(39766542, 1446056, 0x7ffff); \
    0x01b80000 &&& 0xfff80000 : set_h(39043573, 1394413, 0x7ffff); \
    0x01c00000 &&& 0xfff80000 : set_h(38346421, 1345488, 0x7ffff); \
    0x01c80000 &&& 0xfff80000 : set_h(37673727, 1299094, 0x7ffff); \
    0x01d00000 &&& 0xfff80000 : set_h(37024228, 1255059, 0x7ffff); \
    0x01d80000 &&& 0xfff80000 : set_h(36396743, 1213225, 0x7ffff); \
    0x01e00000 &&& 0xfff80000 : set_h(35790172, 1173448, 0x7ffff); \
    0x01e80000 &&& 0xfff80000 : set_h(35203486, 1135596, 0x7ffff); \
    0x01f00000 &&& 0xfff80000 : set_h(34635725, 1099547, 0x7ffff); \
    0x01f80000 &&& 0xfff80000 : set_h(34085985, 1065187, 0x7ffff); \
    0x02000000 &&& 0xfff80000 : set_h(33553424, 1032413, 0x7ffff); \
    0x02080000 &&& 0xfff80000 : set_h(33037247, 1001129, 0x7ffff); \
    0x02100000 &&& 0xfff80000 : set_h(32536711, 971245, 0x7ffff); \
    0x02180000 &&& 0xfff80000 : set_h(32051115, 942680, 0x7ffff); \
    0x02200000 &&& 0xfff80000 : set_h(31579801, 915357, 0x7ffff); \
    0x02280000 &&& 0xfff80000 : set_h(31122146, 889204, 0x7ffff); \
    0x02300000 &&& 0xfff00000 : set_h(30675294, 852092, 0xfffff); \
    0x02400000 &&& 0xfff00000 : set_h(29823363, 806037, 0xfffff); \
    0x02500000 &&& 0xfff00000 : set_h(29017469, 763618, 0xfffff); \
    0x02600000 &&& 0xfff00000 : set_h(28253980, 724461, 0xfffff); \
    0x02700000 &&& 0xfff00000 : set_h(27529636, 688241, 0xfffff); \
    0x02800000 &&& 0xfff00000 : set_h(26841500, 654671, 0xfffff); \
    0x02900000 &&& 0xfff00000 : set_h(26186924, 623498, 0xfffff); \
    0x02a00000 &&& 0xfff00000 : set_h(25563512, 594500, 0xfffff); \
    0x02b00000 &&& 0xfff00000 : set_h(24969090, 567479, 0xfffff); \
    0x02c00000 &&& 0xfff00000 : set_h(24401683, 542260, 0xfffff); \
    0x02d00000 &&& 0xfff00000 : set_h(23859489, 518685, 0xfffff); \
    0x02e00000 &&& 0xfff00000 : set_h(23340864, 496614, 0xfffff); \
    0x02f00000 &&& 0xfff00000 : set_h(22844305, 475923, 0xfffff); \
    0x03000000 &&& 0xfff00000 : set_h(22368432, 456499, 0xfffff); \
    0x03100000 &&& 0xfff00000 : set_h(21911980, 438240, 0xfffff); \
    0x03200000 &&& 0xfff00000 : set_h(21473784, 421055, 0xfffff); \
    0x03300000 &&& 0xfff00000 : set_h(21052769, 404861, 0xfffff); \
    0x03400000 &&& 0xfff00000 : set_h(20647945, 389584, 0xfffff); \
    0x03500000 &&& 0xfff00000 : set_h(20258395, 375155, 0xfffff); \
    0x03600000 &&& 0xfff00000 : set_h(19883271, 361514, 0xfffff); \
    0x03700000 &&& 0xfff00000 : set_h(19521786, 348603, 0xfffff); \
    0x03800000 &&& 0xfff00000 : set_h(19173210, 336372, 0xfffff); \
    0x03900000 &&& 0xfff00000 : set_h(18836864, 324774, 0xfffff); \
    0x03a00000 &&& 0xfff00000 : set_h(18512114, 313765, 0xfffff); \
    0x03b00000 &&& 0xfff00000 : set_h(18198371, 303306, 0xfffff); \
    0x03c00000 &&& 0xfff00000 : set_h(17895086, 293362, 0xfffff); \
    0x03d00000 &&& 0xfff00000 : set_h(17601743, 283899, 0xfffff); \
    0x03e00000 &&& 0xfff00000 : set_h(17317862, 274887, 0xfffff); \
    0x03f00000 &&& 0xfff00000 : set_h(17042993, 266297, 0xfffff); \
    0x04000000 &&& 0xfff00000 : set_h(16776712, 258103, 0xfffff); \
    0x04100000 &&& 0xfff00000 : set_h(16518624, 250282, 0xfffff); \
    0x04200000 &&& 0xfff00000 : set_h(16268356, 242811, 0xfffff); \
    0x04300000 &&& 0xfff00000 : set_h(16025558, 235670, 0xfffff); \
    0x04400000 &&& 0xfff00000 : set_h(15789900, 228839, 0xfffff); \
    0x04500000 &&& 0xfff00000 : set_h(15561073, 222301, 0xfffff); \
    0x04600000 &&& 0xffe00000 : set_h(15337647, 213023, 0x1fffff); \
    0x04800000 &&& 0xffe00000 : set_h(14911681, 201509, 0x1fffff); \
    0x04a00000 &&& 0xffe00000 : set_h(14508735, 190904, 0x1fffff); \
    0x04c00000 &&& 0xffe00000 : set_h(14126990, 181115, 0x1fffff); \
    0x04e00000 &&& 0xffe00000 : set_h(13764818, 172060, 0x1fffff); \
    0x05000000 &&& 0xffe00000 : set_h(13420750, 163668, 0x1fffff); \
    0x05200000 &&& 0xffe00000 : set_h(13093462, 155875, 0x1fffff); \
    0x05400000 &&& 0xffe00000 : set_h(12781756, 148625, 0x1fffff); \
    0x05600000 &&& 0xffe00000 : set_h(12484545, 141870, 0x1fffff); \
    0x05800000 &&& 0xffe00000 : set_h(12200841, 135565, 0x1fffff); \
    0x05a00000 &&& 0xffe00000 : set_h(11929744, 129671, 0x1fffff); \
    0x05c00000 &&& 0xffe00000 : set_h(11670432, 124154, 0x1fffff); \
    0x05e00000 &&& 0xffe00000 : set_h(11422152, 118981, 0x1fffff); \
    0x06000000 &&& 0xffe00000 : set_h(11184216, 114125, 0x1fffff); \
    0x06200000 &&& 0xffe00000 : set_h(10955990, 109560, 0x1fffff); \
    0x06400000 &&& 0xffe00000 : set_h(10736892, 105264, 0x1fffff); \
    0x06600000 &&& 0xffe00000 : set_h(10526384, 101215, 0x1fffff); \
    0x06800000 &&& 0xffe00000 : set_h(10323972, 97396, 0x1fffff); \
    0x06a00000 &&& 0xffe00000 : set_h(10129197, 93789, 0x1fffff); \
    0x06c00000 &&& 0xffe00000 : set_h(9941635, 90379, 0x1fffff); \
    0x06e00000 &&& 0xffe00000 : set_h(9760893, 87151, 0x1fffff); \
    0x07000000 &&& 0xffe00000 : set_h(9586605, 84093, 0x1fffff); \
    0x07200000 &&& 0xffe00000 : set_h(9418432, 81193, 0x1fffff); \
    0x07400000 &&& 0xffe00000 : set_h(9256057, 78441, 0x1fffff); \
    0x07600000 &&& 0xffe00000 : set_h(9099186, 75827, 0x1fffff); \
    0x07800000 &&& 0xffe00000 : set_h(8947543, 73341, 0x1fffff); \
    0x07a00000 &&& 0xffe00000 : set_h(8800872, 70975, 0x1fffff); \
    0x07c00000 &&& 0xffe00000 : set_h(8658931, 68722, 0x1fffff); \
    0x07e00000 &&& 0xffe00000 : set_h(8521496, 66574, 0x1fffff);

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
