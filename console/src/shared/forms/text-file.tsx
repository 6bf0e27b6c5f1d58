/** A field for the text of a file: pasted, chosen, or dropped on it. */
import { Button, FileButton, Group, Textarea, type TextareaProps } from '@mantine/core';
import { useRef, type DOMAttributes, type ReactNode } from 'react';
import { text } from './forms.text.js';

/** Makes an element take a file that is dropped on it, as text. */
export const fileDrop = (
  onText: (text: string) => void,
): Pick<DOMAttributes<HTMLElement>, 'onDragOver' | 'onDrop'> => ({
  onDragOver: (event) => event.preventDefault(),
  onDrop(event) {
    const [file] = event.dataTransfer.files;
    if (file === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    void file.text().then(onText);
  },
});

interface TextFileProps extends Omit<TextareaProps, 'value' | 'onChange' | 'onDrop'> {
  readonly value?: string;
  readonly onChange: (value: string) => void;
  /** Extensions of files that the dialog offers, such as `.pem,.crt`. */
  readonly accept: string;
}

export function TextFile({ value = '', onChange, accept, ...input }: TextFileProps): ReactNode {
  const reset = useRef<() => void>(null);
  const read = (file: File | null): void => {
    void file?.text().then(onChange);
    // Otherwise the same file could not be chosen again, after an edit.
    reset.current?.();
  };
  return (
    <div>
      <Textarea
        rows={5}
        spellCheck={false}
        autoComplete="off"
        {...input}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 12 } }}
        value={value}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
        {...fileDrop(onChange)}
      />
      <Group gap="xs" pt={4}>
        <FileButton onChange={read} accept={accept} resetRef={reset}>
          {(button) => (
            <Button {...button} size="xs" variant="default">
              {text.chooseFile}
            </Button>
          )}
        </FileButton>
      </Group>
    </div>
  );
}
