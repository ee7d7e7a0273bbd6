# make install: the program, the library (shared and static), headers, pkg-config and CMake package files, man pages.
include(CMakePackageConfigHelpers)

set_target_properties(paramo_shared PROPERTIES EXPORT_NAME paramo)
install(TARGETS paramo_shared paramo_static EXPORT paramo
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
if(TARGET paramo)
  install(TARGETS paramo RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES ${CMAKE_BINARY_DIR}/man/paramo.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${PROJECT_SOURCE_DIR}/man/paramo.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)

# Both find their prefix from where they lie, so an installed tree can be moved.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/paramo)
file(RELATIVE_PATH PARAMO_PC_TO_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" PARAMO_PC_TO_PREFIX "${PARAMO_PC_TO_PREFIX}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/paramo.pc.in ${PROJECT_BINARY_DIR}/paramo.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/paramo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/paramoConfig.cmake.in ${PROJECT_BINARY_DIR}/paramoConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/paramoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/paramoConfig.cmake ${PROJECT_BINARY_DIR}/paramoConfigVersion.cmake
  DESTINATION ${package_dir})
install(EXPORT paramo NAMESPACE paramo:: FILE paramoTargets.cmake DESTINATION ${package_dir})
