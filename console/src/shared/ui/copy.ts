/** Copies a text, over plain HTTP too, where browsers have no clipboard for scripts. */
import { useEffect, useState } from 'react';

const copiedMs = 2_000;

interface Callbacks {
  /** The browser refuses, so that a person can copy by hand. */
  readonly failed?: () => void;
  readonly done?: (() => void) | undefined;
}

export function useCopy(value: string, callbacks: Callbacks = {}): readonly [copied: boolean, copy: () => void] {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), copiedMs);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async (): Promise<void> => {
    const done = window.isSecureContext
      ? await navigator.clipboard.writeText(value).then(
          () => true,
          () => false,
        )
      : copyByCommand(value);
    setCopied(done);
    if (done) callbacks.done?.();
    else callbacks.failed?.();
  };
  return [copied, () => void copy()];
}

function copyByCommand(value: string): boolean {
  const field = document.createElement('textarea');
  field.value = value;
  field.style.position = 'fixed';
  // Beside the focused element, because a dialog keeps the focus inside itself.
  const before = document.activeElement;
  (before?.parentElement ?? document.body).append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return done;
}
