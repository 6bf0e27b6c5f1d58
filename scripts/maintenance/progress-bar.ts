/**
 * The progress of a command: a bar on a terminal, otherwise a plain line every few seconds. On standard error, to keep
 * it apart from the command's output.
 */
export interface ProgressState {
  /** 0 to 1. */
  readonly share: number;
  readonly count: number;
  readonly elapsedMs: number;
  /** Where this run started; not 0 if it continues an earlier one. */
  readonly startShare: number;
  readonly startCount: number;
}

const number = (value: number): string => Math.round(value).toLocaleString('en-US');

/** `12 s`, `3 min 05 s`, `2 h 10 min`. @internal exported for tests */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const two = (value: number): string => String(value).padStart(2, '0');
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
}

/**
 * One line: share, count, rate, time left; with a bar of `barWidth` characters, 0 for none.
 * @internal exported for tests
 */
export function progressLine(label: string, unit: string, state: ProgressState, barWidth: number): string {
  const share = Math.min(1, Math.max(0, state.share));
  const seconds = state.elapsedMs / 1000;
  const rate = seconds > 0 ? (state.count - state.startCount) / seconds : 0;
  const gained = share - state.startShare;
  const left = gained > 0 && seconds >= 1 ? ((1 - share) / gained) * seconds : undefined;
  const filled = Math.round(share * barWidth);
  const bar = barWidth === 0 ? '' : `[${'#'.repeat(filled)}${'-'.repeat(barWidth - filled)}] `;
  const percent = `${String(Math.floor(share * 100)).padStart(3)} %`;
  const leftText = share >= 1 ? '' : left === undefined ? '' : `  ${durationText(left)} left`;
  return `${label} ${bar}${percent}  ${number(state.count)} ${unit}  ${number(rate)}/s${leftText}`;
}

export interface ProgressBar {
  /** @param share 0 to 1 */
  update(share: number, count: number): void;
  /** Draws the last state and ends the line. */
  finish(): void;
}

interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const redrawMs = 100;
const plainMs = 5_000;
const clearLine = '\r\u001b[2K';

export function createProgressBar(label: string, unit: string, output: Output = process.stderr): ProgressBar {
  const terminal = output.isTTY === true;
  const began = performance.now();
  let drawn = terminal ? Number.NEGATIVE_INFINITY : began;
  let start: { readonly share: number; readonly count: number } | undefined;
  let last = { share: 0, count: 0 };

  const draw = (): void => {
    drawn = performance.now();
    const state: ProgressState = {
      ...last,
      elapsedMs: drawn - began,
      startShare: start?.share ?? 0,
      startCount: start?.count ?? 0,
    };
    const width = Math.min(30, Math.max(0, (output.columns ?? 80) - label.length - 50));
    const line = progressLine(label, unit, state, terminal ? width : 0);
    output.write(terminal ? `${clearLine}${line}` : `${line}\n`);
  };
  return {
    update(share, count) {
      last = { share, count };
      start ??= last;
      if (performance.now() - drawn >= (terminal ? redrawMs : plainMs)) draw();
    },
    finish() {
      if (start === undefined) return;
      draw();
      if (terminal) output.write('\n');
    },
  };
}
