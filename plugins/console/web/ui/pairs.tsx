import { visibleText } from './format.js'

interface PairsProps {
  /** Those without a text are left out. */
  readonly rows: readonly (readonly [name: string, text: string | undefined])[]
  readonly mono?: boolean
}

/** Names and what belongs to each, side by side. */
export const Pairs = ({ rows, mono = false }: PairsProps) => (
  <dl class="pairs">
    {rows.map(
      ([name, text]) =>
        text && (
          <div key={name}>
            <dt>{name}</dt>
            <dd class={mono ? 'mono' : undefined} dir="auto">
              {visibleText(text)}
            </dd>
          </div>
        ),
    )}
  </dl>
)
