/** A text field whose value goes into the address when one pauses typing. */
import { useDebouncedCallback } from '@mantine/hooks';
import { useEffect, useRef, useState, type ChangeEvent } from 'react';

const pauseMs = 250;

interface TypedField {
  readonly value: string;
  onChange(event: ChangeEvent<HTMLInputElement>): void;
}

/**
 * @param told the value from the address
 * @param tell called with what was typed; undefined for nothing
 */
export function useTyped(told: string, tell: (value: string | undefined) => void): TypedField {
  const [value, setValue] = useState(told);
  const sent = useRef(told);
  const send = useDebouncedCallback((typed: string) => {
    sent.current = typed;
    tell(typed === '' ? undefined : typed);
  }, pauseMs);
  // Back and forward change the address too.
  useEffect(() => {
    if (told === sent.current) return;
    sent.current = told;
    setValue(told);
  }, [told]);
  return {
    value,
    onChange({ currentTarget }) {
      setValue(currentTarget.value);
      send(currentTarget.value);
    },
  };
}
