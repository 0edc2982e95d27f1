//! Program (experimental). Read by `cargo xtask generate`; never compiled.

/// Holds extra options for building and linking programs.
#[flags]
enum ExpProgramFlag {
    AllowUnresolvedSymbols = 1 << 0,
}

#[table(ProgramExp, "ProgramExp")]
extern "C" {
    /// Resolves symbols between programs by linking them at run time.
    #[error(InvalidProgram, "one of the listed programs is not a real program")]
    #[error(InvalidSize, count == 0)]
    #[error(ProgramLinkFailure, "linking the programs fails")]
    #[error(UnsupportedFeature, "the adapter has no way of doing this")]
    fn urProgramDynamicLinkExp(context: Context, count: u32, #[list(count)] programs: *const Program);

    /// Compiles and links one program for a chosen list of devices.
    #[error(InvalidProgram, "the handle given for the program is not a real program")]
    #[error(ProgramBuildFailure, "building the program fails")]
    fn urProgramBuildExp(
        program: Program,
        num_devices: u32,
        #[list(num_devices)] devices: *mut Device,
        flags: ExpProgramFlags,
        #[optional] options: *const c_char,
    );

    /// Compiles one program for a chosen list of devices without linking.
    #[error(InvalidProgram, "the handle given for the program is not a real program")]
    #[error(ProgramBuildFailure, "compiling the program fails")]
    fn urProgramCompileExp(
        #[inout] program: Program,
        num_devices: u32,
        #[list(num_devices)] devices: *mut Device,
        flags: ExpProgramFlags,
        #[optional] options: *const c_char,
    );

    /// Joins compiled programs into a new one for chosen devices.
    #[error(InvalidProgram, "one of the listed programs is not a real program")]
    #[error(InvalidSize, count == 0)]
    #[error(ProgramLinkFailure, "linking the programs fails")]
    fn urProgramLinkExp(
        context: Context,
        num_devices: u32,
        #[list(num_devices)] devices: *mut Device,
        flags: ExpProgramFlags,
        count: u32,
        #[list(count)] programs: *const Program,
        #[optional] options: *const c_char,
        #[out] #[nulled] program: *mut Program,
    );
}
