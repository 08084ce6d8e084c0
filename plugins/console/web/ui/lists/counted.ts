import { useEffect } from 'preact/hooks'

/** What a section reports to its page: how many entries it shows, as soon as that is known. */
export interface CountedProps {
  readonly counted?: (entries: number) => void
}

/** Reports the number of entries of a section. */
export const useCounted = ({ counted }: CountedProps, entries: number | undefined): void =>
  useEffect(() => {
    if (entries !== undefined) counted?.(entries)
  }, [entries])
