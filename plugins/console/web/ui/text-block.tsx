import type { ComponentChildren } from 'preact'
import { CopyButton, type CopyButtonProps } from './copy.js'
import { visibleText } from './format.js'

interface TextBlockProps extends Partial<CopyButtonProps> {
  readonly text: string
  /** The classes of the block. */
  readonly class?: string
  readonly dir?: 'auto' | 'ltr'
  readonly label?: string
  /** How it is shown, where that is not the text itself. */
  readonly children?: ComponentChildren
  /** What the clipboard gets, where that is not the text. */
  readonly copies?: CopyButtonProps['text']
}

/** A text that keeps its lines: code, an output, a message. It scrolls by itself, and can be copied. */
export const TextBlock = ({
  text,
  what = 'the text',
  class: classes = 'code',
  dir = 'ltr',
  label,
  copies = text,
  children = visibleText(text),
}: TextBlockProps) => (
  <div class="copy-box">
    <pre class={classes} tabIndex={0} dir={dir} aria-label={label}>
      {children}
    </pre>
    <CopyButton text={copies} what={what} />
  </div>
)
