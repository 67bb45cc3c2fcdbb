//! The transport through its public interface.
