import { Component, type ReactNode } from "react";
import { Problem } from "./Problem";

type Props = { children: ReactNode };

/** Keeps a fault of one panel from taking the whole page. */
export class Boundary extends Component<Props, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return (
      <Problem
        error={this.state.error}
        title="This part of the console has failed"
        retry={() => this.setState({ error: null })}
      />
    );
  }
}
