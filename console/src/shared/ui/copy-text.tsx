/** A short text to copy, such as an address, in one line with its button. */
import { ActionIcon } from '@mantine/core';
import { IconCheck, IconCopy } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { useCopy } from './copy.js';
import classes from './copy-text.module.css';
import { text } from './ui.text.js';

export function CopyText({ label, value }: { readonly label: string; readonly value: string }): ReactNode {
  const [copied, copy] = useCopy(value);
  const says = `${copied ? text.copied : text.copy}: ${label}`;
  return (
    <span className={classes.place} title={label}>
      <span className={classes.value}>{value}</span>
      <ActionIcon variant="subtle" color="gray" size="sm" onClick={copy} aria-label={says} title={says}>
        {copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
      </ActionIcon>
    </span>
  );
}
