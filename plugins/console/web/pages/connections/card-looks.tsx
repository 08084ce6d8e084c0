import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { CardGuide, CatalogCard } from '../../../../capabilities/contract.js'
import { visibleName } from '../../ui/format.js'

/** The picture of a card; of a card without one the first letter of its name. */
export const CardArt = ({ card: { art, name } }: { card: Pick<CatalogCard, 'art' | 'name'> }) => {
  const url = useSignal('')
  useEffect(() => {
    if (art === undefined) return undefined
    // As a picture it runs nothing and loads nothing, whatever is in it.
    const made = URL.createObjectURL(new Blob([art], { type: 'image/svg+xml' }))
    url.value = made
    return () => {
      url.value = ''
      URL.revokeObjectURL(made)
    }
  }, [art])
  return url.value ? (
    <img src={url.value} alt="" width="24" height="24" onError={() => (url.value = '')} />
  ) : (
    <span class="tag" aria-hidden="true">
      {visibleName(name).slice(0, 1)}
    </span>
  )
}

const linkOf = ({ url, urlFromField, path = '' }: CardGuide, valueOf: (key: string) => string): string | undefined => {
  const base = url ?? (urlFromField === undefined ? '' : valueOf(urlFromField).replace(/\/+$/, '') + path)
  const found = URL.parse(base)
  return found && /^https?:$/.test(found.protocol) ? found.href : undefined
}

interface CardGuideViewProps {
  readonly guide: CardGuide
  /** What is filled in so far. */
  readonly valueOf: (key: string) => string
}

/** Where a person gets the values that a card asks for. */
export const CardGuideView = ({ guide, valueOf }: CardGuideViewProps) => {
  const { steps = [], scopes, linkLabel } = guide
  const link = linkOf(guide, valueOf)
  return (
    <section class="quiet small stack" aria-label="Where the values are from">
      {steps.length > 0 && (
        <ol>
          {steps.map(step => (
            <li key={step}>{visibleName(step)}</li>
          ))}
        </ol>
      )}
      {scopes !== undefined && <p>It needs: {visibleName(scopes)}.</p>}
      {link !== undefined && (
        <p>
          <a href={link} target="_blank" rel="noopener noreferrer">
            {visibleName(linkLabel ?? URL.parse(link)!.host)}
          </a>
        </p>
      )}
    </section>
  )
}
