# The console and the portal: web/ is built by Vite (tools/build_web.py) and embedded (tools/embed_assets.py), only when
# something in web/ changed.
set(web ${CMAKE_SOURCE_DIR}/web)
file(GLOB_RECURSE web_sources CONFIGURE_DEPENDS ${web}/src/*.ts ${web}/src/*.tsx ${web}/src/*.css ${web}/snippets/*)
list(FILTER web_sources EXCLUDE REGEX "\\.test\\.ts$|/schema\\.d\\.ts$")
file(GLOB web_settings CONFIGURE_DEPENDS ${web}/*.html ${web}/*.mjs ${web}/package-lock.json ${web}/scripts/*.mjs)
set(web_assets ${CMAKE_BINARY_DIR}/generated/postrider/web/asset_table.cpp)
add_custom_command(
  OUTPUT ${web_assets}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/build_web.py ${CMAKE_BINARY_DIR}/web
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/embed_assets.py ${CMAKE_BINARY_DIR}/web ${web_assets}
  DEPENDS ${web_sources} ${web_settings} ${CMAKE_SOURCE_DIR}/tools/build_web.py ${CMAKE_SOURCE_DIR}/tools/embed_assets.py
  COMMENT "Building the console"
  VERBATIM)
target_sources(postrider_web PRIVATE ${web_assets})
