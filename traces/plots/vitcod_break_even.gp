# Decoder MACs over the memory's bytes per cycle: lines as predicted, points as found. `slopes` has
# the latent heads of $model1, $model2, ...
set title 'Decoder MACs with which the auto-encoder of Q and K breaks even' font ',15'
set xlabel 'bytes per cycle from memory'
set xrange [0:170]
set ylabel 'MACs; above a line the auto-encoder pays'
set yrange [0:*]
set grid ytics lc rgb '#dddddd'
set border 3
set tics nomirror
set key inside left top reverse Left spacing 1.3 autotitle columnheader
colour(i) = word('#2166ac #5aae61 #d95f0e', (i - 1) % 3 + 1)
plot for [i=1:words(slopes)] word(slopes, i) * x with lines lw 2 lc rgb colour(i) notitle, \
     for [i=1:words(slopes)] '$model'.i using 1:2 with points pt 7 ps 1.5 lc rgb colour(i), \
     NaN with lines lw 2 lc rgb '#555555' title 'predicted'
