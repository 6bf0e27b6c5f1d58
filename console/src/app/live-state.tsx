/** Shows whether the page is live, always in the same place. */
import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { StreamState } from '../shared/live/stream.js';
import { formatTime } from '../shared/ui/format.js';
import { State } from '../shared/ui/state.js';
import classes from './live-state.module.css';
import { text } from './shell.text.js';

export function LiveState({ live }: { readonly live: StreamState }): ReactNode {
  switch (live.kind) {
    case 'live':
      return (
        <Text size="sm" component="div" title={text.liveMeaning}>
          <State mood="good">{text.live}</State>
        </Text>
      );
    case 'unreachable':
      return (
        <div role="alert" className={classes.away}>
          <State mood="bad">
            <span className={classes.sentence}>{text.away(formatTime(live.since, 'clock'))}</span>
          </State>
        </div>
      );
    case 'connecting':
    case 'crowded':
    case 'signed_out':
      return (
        <Text size="sm" component="div">
          <State mood="busy">{live.kind === 'crowded' ? text.crowded : text.connecting}</State>
        </Text>
      );
    default:
      return live satisfies never;
  }
}
