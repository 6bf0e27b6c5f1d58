/** Histogram bounds, in seconds, for waits that people and agents notice: from a millisecond to half a minute. */
export const secondsBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
