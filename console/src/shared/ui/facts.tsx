/** Names and values, aligned. */
import type { ReactNode } from 'react';
import classes from './facts.module.css';
import { none } from './format.js';

/** @param facts by the words shown; null and undefined are shown as not set */
export function Facts({ facts }: { readonly facts: Readonly<Record<string, ReactNode>> }): ReactNode {
  return (
    <dl className={classes.facts}>
      {Object.entries(facts).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value ?? none}</dd>
        </div>
      ))}
    </dl>
  );
}
