import { GUIDES } from 'guides:all'
import { useEffect, useRef } from 'preact/hooks'
import { guidePlace, headingAnchor } from '../../data/guide-links.js'
import { fragmentOf } from '../../data/route.js'
import { LinkPlaces } from '../../ui/link-places.js'
import { Icon } from '../../ui/icons.js'
import { Markdown } from '../../ui/markdown.js'
import { Item, Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import type { PageProps } from '../registry.js'

const NAMES = new Map(GUIDES.map(({ file, name }) => [file, name]))

/** Its first heading is that of the page, and no pictures are shown, nor the tables they are in. */
const shownText = (text: string): string =>
  text.replace(/^# +.+\n/m, '').replace(/(?:^\|.*\n)*^.*!\[.*\n(?:^\|.*\n)*/gm, '')

const Guide = ({ file, load, anchor }: { file: string; load: () => Promise<string>; anchor: string | undefined }) => {
  const guide = useQuery(`guide ${file}`, [], load)
  const box = useRef<HTMLDivElement>(null)
  const there = guide.data !== undefined
  useEffect(() => {
    if (!there) return
    const headings = [...(box.current?.querySelectorAll<HTMLElement>('h3, h4, h5') ?? [])]
    const heading = headings.find(({ textContent }) => headingAnchor(textContent ?? '') === anchor)
    if (heading) heading.scrollIntoView()
    else box.current?.closest('.page-body')?.scrollTo(0, 0)
  }, [there, anchor])
  return (
    <Loaded query={guide}>
      {text => (
        <div ref={box} class="guide">
          <LinkPlaces.Provider value={href => guidePlace(file, NAMES, href)}>
            <Markdown text={shownText(text)} />
          </LinkPlaces.Provider>
        </div>
      )}
    </Loaded>
  )
}

/** The guides of the groups: a list of them, or one. */
export const HelpPage = ({ rest: [name, anchor] }: PageProps) => {
  const guide = GUIDES.find(one => one.name === name)
  if (guide)
    return (
      <PageFrame
        title={guide.title}
        before={
          <a class="button plainly back" href={fragmentOf('help')} aria-label="Back to all guides">
            <Icon name="back" />
          </a>
        }
      >
        <Guide key={guide.name} file={guide.file} load={guide.load} anchor={anchor} />
      </PageFrame>
    )
  return (
    <PageFrame title="Help">
      {name !== undefined && <p class="notice">There is no guide of this name.</p>}
      <p class="quiet">
        What each part of the sandbox does, and how it is used. The key <kbd>?</kbd> shows all keys; for programs there
        is a <a href="/reference">reference of all calls</a>.
      </p>
      <ul class="items">
        {GUIDES.map(one => (
          <Item key={one.name} title={<a href={fragmentOf('help', one.name)}>{one.title}</a>} />
        ))}
      </ul>
    </PageFrame>
  )
}
