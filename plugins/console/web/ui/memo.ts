import { Component, h, type FunctionComponent } from 'preact'

/** A component that is rendered again only when its properties differ. */
export const memo = <P extends object>(
  View: FunctionComponent<P>,
  same: (before: P, after: P) => boolean = (before, after) =>
    (Object.keys(after) as (keyof P)[]).every(key => before[key] === after[key]),
): FunctionComponent<P> => {
  class Memo extends Component<P> {
    override shouldComponentUpdate(after: P): boolean {
      return !same(this.props as P, after)
    }

    override render() {
      return h(View, this.props as P)
    }
  }
  return Memo as unknown as FunctionComponent<P>
}
