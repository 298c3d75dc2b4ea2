# Two bars for a layer; `mask` is its name. Columns of $layers: layer, SDDMM, SpMM, active lines, and
# a stall for each cause, stacked with the tallest first.
stats $layers skip 1 nooutput
set xrange [-0.6:STATS_records - 0.4]
set title 'Cycles of the attention engines by layer: '.mask font ',15'
set xlabel 'layer: left by phase, right by what the lines did'
set ylabel 'core cycles'
set grid ytics lc rgb '#dddddd'
set border 3
set tics nomirror
set key outside right top reverse Left spacing 1.3 autotitle columnheader
set boxwidth 0.36
set style fill solid noborder
set yrange [0:*]
set xtics 1
set format y '%.0f'
colours = '#8c510a #35978f #dfc27d #b2182b #762a83'
plot $layers using ($1-0.2):($2+$3) with boxes lc rgb '#5aae61' title 'SpMM', \
     '' using ($1-0.2):2 with boxes lc rgb '#1b7837' title 'SDDMM', \
     for [i=STATS_columns:5:-1] '' using ($1+0.2):(sum [c=4:i] column(c)) with boxes \
         lc rgb word(colours, (i-5) % 5 + 1) title 'stalled: '.columnheader(i), \
     '' using ($1+0.2):4 with boxes lc rgb '#2166ac' title 'active'
