import { useSignal } from '@preact/signals'
import type { Token, Tokens } from 'marked'
import type { ComponentChildren, JSX } from 'preact'
import { CodeBlock } from './code-block.js'
import { LinkPlaces } from './link-places.js'
import { memo } from './memo.js'
import { useContext, useRef } from 'preact/hooks'
import { GrowingBlocks, isLargeBlock, safeHref, type MarkdownBlock } from '../run/blocks.js'
import { countText, visibleText } from './format.js'

/** Deeper tokens are shown as they were written. */
const DEEPEST = 40
const MOST_ROWS = 2_000

const ENTITIES: { readonly [name: string]: string } = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
const decoded = (text: string): string => text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name]!)

const Inline = ({ tokens, depth }: { tokens: readonly Token[] | undefined; depth: number }): JSX.Element => (
  <>
    {tokens?.map((token, at) => (
      <InlineToken key={at} token={token} depth={depth + 1} />
    ))}
  </>
)

const Link = ({ to, children }: { to: string; children: ComponentChildren }) => {
  const within = useContext(LinkPlaces)(to)
  const href = safeHref(to)
  if (within) return <a href={within}>{children}</a>
  if (!href) return <span title={visibleText(to)}>{children}</span>
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  )
}

const InlineToken = ({ token, depth }: { token: Token; depth: number }): JSX.Element => {
  if (depth > DEEPEST) return <>{visibleText(token.raw)}</>
  switch (token.type) {
    case 'strong':
      return (
        <strong>
          <Inline tokens={token.tokens} depth={depth} />
        </strong>
      )
    case 'em':
      return (
        <em>
          <Inline tokens={token.tokens} depth={depth} />
        </em>
      )
    case 'del':
      return (
        <del>
          <Inline tokens={token.tokens} depth={depth} />
        </del>
      )
    case 'codespan':
      return <code class="inline-code">{visibleText(decoded(token.text))}</code>
    case 'br':
      return <br />
    case 'link':
      return (
        <Link to={token.href as string}>
          <Inline tokens={token.tokens} depth={depth} />
        </Link>
      )
    case 'image':
      return <span class="quiet">[image: {visibleText((token.text as string) || (token.href as string))}]</span>
    case 'text':
    case 'escape':
      return (token as Tokens.Text).tokens ? (
        <Inline tokens={(token as Tokens.Text).tokens} depth={depth} />
      ) : (
        <>{visibleText(decoded(token.text as string))}</>
      )
    default:
      return <>{visibleText(token.raw)}</>
  }
}

const Blocks = ({ tokens, depth }: { tokens: readonly Token[] | undefined; depth: number }): JSX.Element => (
  <>
    {tokens?.map((token, at) => (
      <BlockToken key={at} token={token} depth={depth + 1} />
    ))}
  </>
)

const Table = ({ token, depth }: { token: Tokens.Table; depth: number }) => {
  const rows = token.rows.slice(0, MOST_ROWS / Math.max(1, token.header.length))
  return (
    <div class="table-box" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {token.header.map((cell, at) => (
              <th key={at} scope="col">
                <Inline tokens={cell.tokens} depth={depth} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, column) => (
                <td key={column}>
                  <Inline tokens={cell.tokens} depth={depth} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length < token.rows.length && (
        <p class="quiet small">{countText(token.rows.length - rows.length)} more rows</p>
      )}
    </div>
  )
}

const heading = (depth: number, children: ComponentChildren): JSX.Element =>
  depth <= 1 ? <h3 class="md-1">{children}</h3> : depth === 2 ? <h4>{children}</h4> : <h5>{children}</h5>

const BlockToken = ({ token, depth }: { token: Token; depth: number }): JSX.Element => {
  if (depth > DEEPEST) return <p>{visibleText(token.raw)}</p>
  switch (token.type) {
    case 'space':
    case 'def':
      return <></>
    case 'heading':
      return heading((token as Tokens.Heading).depth, <Inline tokens={token.tokens} depth={depth} />)
    case 'paragraph':
      return (
        <p>
          <Inline tokens={token.tokens} depth={depth} />
        </p>
      )
    case 'code':
      return <CodeBlock text={token.text as string} language={/^\w*/.exec((token as Tokens.Code).lang ?? '')![0]} />
    case 'blockquote':
      return (
        <blockquote>
          <Blocks tokens={token.tokens} depth={depth} />
        </blockquote>
      )
    case 'list': {
      const { ordered, start, items } = token as Tokens.List
      const list = items.map((item, at) => (
        <li key={at}>
          {item.task && <span class="mono">{item.checked ? '[x] ' : '[ ] '}</span>}
          <Blocks tokens={item.tokens} depth={depth} />
        </li>
      ))
      return ordered ? <ol start={Number(start) || 1}>{list}</ol> : <ul>{list}</ul>
    }
    case 'table':
      return <Table token={token as Tokens.Table} depth={depth} />
    case 'hr':
      return <hr />
    case 'html':
      return <p class="mono">{visibleText(token.raw)}</p>
    default:
      return (
        <p>
          <InlineToken token={token} depth={depth} />
        </p>
      )
  }
}

const Block = memo(
  ({ block }: { block: MarkdownBlock }) => {
    const shown = useSignal(!isLargeBlock(block))
    if (shown.value) return <BlockToken token={block.token} depth={0} />
    return (
      <button
        class="button"
        type="button"
        onClick={() => {
          shown.value = true
        }}
      >
        Show a block of {countText(block.raw.length)} characters
      </button>
    )
  },
  (before, after) => before.block === after.block || before.block.raw === after.block.raw,
)

/** Markdown as elements: no HTML of the text is used, and nothing is loaded. */
export const Markdown = ({ text }: { text: string }) => {
  const parser = useRef<GrowingBlocks>(undefined)
  parser.current ??= new GrowingBlocks()
  return (
    <div class="prose" dir="auto">
      {parser.current.update(text).map((block, at) => (
        <Block key={at} block={block} />
      ))}
    </div>
  )
}
