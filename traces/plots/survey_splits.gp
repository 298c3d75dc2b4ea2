set title 'Utilisation of the array by split of the SRAM' font ',15'
set xlabel 'scratchpad / accumulator (KiB)'
set ylabel '% of 256 MACs a cycle'
set yrange [0:100]
set grid ytics lc rgb '#dddddd'
set border 3
set tics nomirror
set style data histograms
set style histogram clustered gap 1
set style fill solid noborder
set key outside right top reverse Left
plot $splits using 2:xtic(1) lc rgb '#2166ac' title 'simulated', \
     '' using 3 lc rgb '#bbbbbb' title 'published'
